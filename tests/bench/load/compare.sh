#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures `attendant load` beside perf_analyzer: what a request costs each of them, against a server that computes nothing,
# and whether both find the same percentiles, against Attendant's server. Builds what it needs, writes load.md and load.json
# into build/load/ and prints the ratios beside the marks.
#
#   tests/bench/load/compare.sh [--rounds N] [--seconds S] [--null_concurrency N] [--concurrency N] [--output DIR]
#
# ATTENDANT_BIN_DIR names another build's bin/ folder, with null_server; then nothing is built.
set -euo pipefail
readonly SCRIPT=load
here=$(dirname "$(readlink -f "$0")")
root=$(cd "$here/../../.." && pwd)
# shellcheck source-path=SCRIPTDIR source=../../../deploy/common.sh
. "$root/deploy/common.sh"

heed_signals
[ -n "${ATTENDANT_TEST_MODEL:-}" ] || interruptible "$root/deploy/fetch-model.sh" >/dev/null
ATTENDANT_TEST_MODEL=${ATTENDANT_TEST_MODEL:-$("$root/deploy/fetch-model.sh")}
export ATTENDANT_TEST_MODEL
# Fetched now, not while measured.
interruptible "$root/tests/integration/kserve/perf_analyzer.sh" --version >/dev/null 2>&1 || true
if [ -z "${ATTENDANT_BIN_DIR:-}" ]; then
  interruptible "$root/deploy/install-deps.sh" build test >&2
  say "building the server and both ends of the load" >&2
  build_release "$root" attendant-server attendant null_server
  export ATTENDANT_BIN_DIR="$root/build/release/bin"
fi
revision=$(git -C "$root" describe --always --dirty 2>/dev/null || echo "an unknown revision")
exec "$root/tests/integration/python.sh" -B "$here/compare.py" --revision "$revision" \
  --command "tests/bench/load/compare.sh $*" --output "$root/build/load" "$@"
