// SPDX-License-Identifier: Apache-2.0
// Pango never gives back the font patterns that it asked Fontconfig for: some hundred KiB once in a process, by no code
// of ours. Part of every program that draws text, where AddressSanitizer looks for leaks.
extern "C" const char* __lsan_default_suppressions();  // NOLINT: the sanitizer's name
extern "C" const char* __lsan_default_suppressions() { return "leak:libfontconfig\n"; }
