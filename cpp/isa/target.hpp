// Functions between BEGIN_TARGET and END_TARGET are compiled for CPUs with the given features, all
// other functions of a file for every CPU. `width` makes GCC use the full vector width.
#pragma once

#define PAIRSTEP_PRAGMA(text) _Pragma(#text)

#if defined(__clang__)
#define BEGIN_TARGET(features, width) \
  PAIRSTEP_PRAGMA(clang attribute push(__attribute__((target(features))), apply_to = function))
#define END_TARGET PAIRSTEP_PRAGMA(clang attribute pop)
#else
#define BEGIN_TARGET(features, width) \
  PAIRSTEP_PRAGMA(GCC push_options) PAIRSTEP_PRAGMA(GCC target(features, width))
#define END_TARGET PAIRSTEP_PRAGMA(GCC pop_options)
#endif
