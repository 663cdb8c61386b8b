// A start from a sample: a machine with limits C on n rows resembles one with limits 4 C on every
// fourth of them. Fitted loosely, that one tells which accounts of the whole will be empty and
// which will be full.
#pragma once

#include "machine.hpp"

namespace pairstep {

// Move a large dual to where machines fitted to samples of it say, each four times as large as the
// one before. Left where it is if few accounts are full: then there is nothing to foretell.
void start_from_samples(const MachineTask& task, Dual& dual, Team& team, MachineProgress& progress);

}  // namespace pairstep
