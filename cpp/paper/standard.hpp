// The headers that the code of hot.inc needs; see isa/standard.hpp.
#pragma once

#include "../isa/standard.hpp"
#include "paper.hpp"
