// Functions between BEGIN_TARGET and END_TARGET are compiled for processors that have some
// features; all others of the file for every processor. GCC has to be told to use whole vectors.
#pragma once

#define PAIRSTEP_PRAGMA(text) _Pragma(#text)

#if defined(__clang__)
#define BEGIN_TARGET(features, whole) \
  PAIRSTEP_PRAGMA(clang attribute push(__attribute__((target(features))), apply_to = function))
#define END_TARGET PAIRSTEP_PRAGMA(clang attribute pop)
#else
#define BEGIN_TARGET(features, whole) \
  PAIRSTEP_PRAGMA(GCC push_options) PAIRSTEP_PRAGMA(GCC target(features, whole))
#define END_TARGET PAIRSTEP_PRAGMA(GCC pop_options)
#endif
