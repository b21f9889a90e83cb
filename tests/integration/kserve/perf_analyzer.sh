#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Triton's own perf_analyzer, unchanged: fetched once into the cache, then run with the arguments given.
#
#   tests/integration/kserve/perf_analyzer.sh -i grpc -u 127.0.0.1:8001 -m minilm \
#     --input-data tests/integration/kserve/texts.json --concurrency-range 1:8
#
# The binary was part of tritonclient's wheels until 2.42.0, the last that runs on Debian 12's C library; it
# needs Debian's libb64-0d, and the CUDA runtime library even where there is no GPU.
set -euo pipefail
readonly SCRIPT=perf_analyzer
readonly CLIENT=tritonclient==2.42.0
readonly CUDA_RUNTIME=nvidia-cuda-runtime-cu12==12.9.79
here=$(dirname "$(readlink -f "$0")")
# shellcheck source-path=SCRIPTDIR source=../../../deploy/common.sh
. "$here/../../../deploy/common.sh"
home="$ATTENDANT_CACHE/perf_analyzer"

fetch() {
  local work wheel
  [ ! -e "$home/perf_analyzer" ] || return 0
  say "fetching $CLIENT and $CUDA_RUNTIME into $home" >&2
  make_work "$home"
  download_wheels "$work" "$CLIENT" "$CUDA_RUNTIME"
  for wheel in "$work"/*.whl; do
    unzip -q -j "$wheel" '*/bin/perf_analyzer' '*/lib/libcudart.so.12' -d "$work/tools" || [ $? = 11 ]  # not both in one
  done
  chmod +x "$work/tools/perf_analyzer"
  rm -rf "$home"
  mv "$work/tools" "$home"
  rm -rf "$work"  # exec, below, runs no trap
}

heed_signals
[ -e "$home/perf_analyzer" ] || with_lock "$home" fetch
LD_LIBRARY_PATH="$home${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" exec "$home/perf_analyzer" "$@"
