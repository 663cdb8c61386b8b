// Chooses the best instruction set of the CPU.
#include "dispatch.hpp"

#include <atomic>
#include <cstring>

namespace pairstep {

namespace baseline {
extern const InstructionSet table;
}
#if defined(__x86_64__)
namespace avx2 {
extern const InstructionSet table;
}
namespace avx512 {
extern const InstructionSet table;
}
#endif

namespace {

// The instruction sets of this CPU, best last. A set needs every feature it is compiled with.
std::vector<const InstructionSet*> available() {
  std::vector<const InstructionSet*> tables{&baseline::table};
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                        __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  if (has_avx2) tables.push_back(&avx2::table);
  if (has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw"))
    tables.push_back(&avx512::table);
#endif
  return tables;
}

// Atomic, because other threads may read it while it changes.
std::atomic<const InstructionSet*>& chosen() {
  static std::atomic<const InstructionSet*> table = available().back();
  return table;
}

}  // namespace

const InstructionSet& isa() { return *chosen().load(std::memory_order_relaxed); }

bool use_instruction_set(const char* name) {
  for (const InstructionSet* table : available())
    if (std::strcmp(table->name, name) == 0) {
      chosen() = table;
      return true;
    }
  return false;
}

std::vector<const char*> instruction_sets() {
  std::vector<const char*> names;
  for (const InstructionSet* table : available()) names.push_back(table->name);
  return names;
}

}  // namespace pairstep
