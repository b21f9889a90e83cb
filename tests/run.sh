#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds, and runs every test; ctest's summary closes it.
#
#   tests/run.sh [--preset NAME] [FILTER]
#     NAME    release (the default), dev, asan, tsan, fuzz or clang-strict
#     FILTER  a regular expression: only tests with such a name (ctest -R); an error where none has one
set -euo pipefail
readonly SCRIPT=tests
root=$(dirname "$(dirname "$(readlink -f "$0")")")
# shellcheck source-path=SCRIPTDIR source=../deploy/common.sh
. "$root/deploy/common.sh"

preset=release
filter=()
while [ $# -gt 0 ]; do
  case "$1" in
    --preset) preset=${2:?--preset needs a name}; shift ;;
    --preset=*) preset=${1#*=} ;;
    -h | --help) show_help ;;
    -*) die "unknown argument '$1'; --help tells more" ;;
    *) [ ${#filter[@]} = 0 ] || die "a second FILTER, '$1': give one, such as 'a|b'"
       filter=(-R "$1") ;;
  esac
  shift
done

parts=(build quickstart test)
case "$preset" in clang-strict | fuzz) parts+=(clang) ;; esac
[ "$preset" != release ] || parts+=(image cuda)
heed_signals
interruptible "$root/deploy/install-deps.sh" "${parts[@]}"
[ -n "${ATTENDANT_TEST_MODEL:-}" ] || interruptible "$root/deploy/fetch-model.sh" >/dev/null
ATTENDANT_TEST_MODEL=${ATTENDANT_TEST_MODEL:-$("$root/deploy/fetch-model.sh")}
export ATTENDANT_TEST_MODEL
interruptible "$root/deploy/fetch-model.sh" all-mpnet-base-v2 >/dev/null
interruptible "$root/tests/integration/python.sh" -c ''

cd "$root"
say "building the preset $preset"
configure . "$preset" >/dev/null
interruptible setsid cmake --build --preset "$preset"
say "running the tests"
exec ctest --preset "$preset" --parallel "$(nproc)" "${filter[@]}"
