// Chooses the best instruction set of the CPU.
#include "dispatch.hpp"

#include <atomic>
#include <cstdlib>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

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
#elif defined(__aarch64__)
namespace neon {
extern const InstructionSet table;
}
#endif

namespace {

#if defined(__x86_64__)

// Features of x86-64 CPUs, from the instructions CPUID and XGETBV. The function
// __builtin_cpu_supports would need a part of the compiler's runtime library that Zig does not
// have, and that the Clang of Visual Studio does not link.
struct Features {
  bool avx2 = false, avx512 = false;

  Features() {
    // Bits of CPUID(1).ecx, CPUID(7).ebx and XCR0: Intel's manual, volume 2 (CPUID) and volume 1,
    // section 13.3.
    constexpr unsigned FMA = 1u << 12, OSXSAVE = 1u << 27;
    constexpr unsigned BMI = 1u << 3, AVX2 = 1u << 5, BMI2 = 1u << 8;
    constexpr unsigned AVX512 = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;  // F, DQ, BW, VL
    constexpr unsigned YMM = 0x6, ZMM = 0xe6;  // registers that the operating system saves
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !has(c, FMA | OSXSAVE)) return;
    const unsigned saved = saved_registers();
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return;
    avx2 = has(saved, YMM) && has(b, BMI | AVX2 | BMI2);
#if defined(__APPLE__)
    const bool saves_zmm = true;  // macOS sets these bits at the first use of the registers
#else
    const bool saves_zmm = has(saved, ZMM);
#endif
    avx512 = avx2 && saves_zmm && has(b, AVX512);
  }

 private:
  static bool has(unsigned bits, unsigned wanted) { return (bits & wanted) == wanted; }

  static unsigned saved_registers() {
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
  }
};

#endif

// The instruction sets of this CPU, best last. A set needs every feature it is compiled with.
std::vector<const InstructionSet*> available() {
  std::vector<const InstructionSet*> tables{&baseline::table};
#if defined(__x86_64__)
  const Features cpu;
  if (cpu.avx2) tables.push_back(&avx2::table);
  if (cpu.avx512) tables.push_back(&avx512::table);
#elif defined(__aarch64__)
  tables.push_back(&neon::table);
#endif
  return tables;
}

const InstructionSet* find(const char* name) {
  for (const InstructionSet* table : available())
    if (std::strcmp(table->name, name) == 0) return table;
  return nullptr;
}

// The value of PAIRSTEP_ISA, or null if it is not set or empty.
const char* wanted_by_environment() {
  const char* name = std::getenv("PAIRSTEP_ISA");
  return name && *name ? name : nullptr;
}

const InstructionSet* first_choice() {
  const char* name = wanted_by_environment();
  const InstructionSet* wanted = name ? find(name) : nullptr;
  return wanted ? wanted : available().back();
}

// Atomic, because other threads may read it while it changes.
std::atomic<const InstructionSet*>& chosen() {
  static std::atomic<const InstructionSet*> table = first_choice();
  return table;
}

}  // namespace

const InstructionSet& isa() { return *chosen().load(std::memory_order_relaxed); }

const char* unknown_instruction_set() {
  const char* name = wanted_by_environment();
  return name && !find(name) ? name : nullptr;
}

bool use_instruction_set(const char* name) {
  const InstructionSet* table = find(name);
  if (table) chosen() = table;
  return table != nullptr;
}

std::vector<const char*> instruction_sets() {
  std::vector<const char*> names;
  for (const InstructionSet* table : available()) names.push_back(table->name);
  return names;
}

}  // namespace pairstep
