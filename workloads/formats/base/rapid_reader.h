// SPDX-License-Identifier: Apache-2.0
#pragma once

// RapidJSON's reader. Its stack adds to a null pointer before it has memory (internal/stack.h of
// 1.1.0), and compares: nothing else is done with the sum.
#ifdef __clang__
#pragma clang attribute push(__attribute__((no_sanitize("pointer-overflow"))), apply_to = function)
#endif
#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>
#ifdef __clang__
#pragma clang attribute pop
#endif
