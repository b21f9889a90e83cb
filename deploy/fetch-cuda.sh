#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What compiles kernels/cuda, on a machine that has no CUDA toolkit: NVIDIA's compiler, headers and libraries from
# the Python package index (0.5 GB), unpacked once into $ATTENDANT_CACHE/cuda-VERSION; $ATTENDANT_CACHE/cuda then
# points there, and CMake looks there. No driver and no GPU are needed. Python only unpacks.
#
#   deploy/fetch-cuda.sh
set -euo pipefail
readonly SCRIPT=cuda
here=$(dirname "$(readlink -f "$0")")
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$here/common.sh"
case ${1-} in -h | --help) show_help ;; esac

readonly VERSION=13.0
# Pinned: a toolkit is made of parts that fit together.
readonly PACKAGES=(
  nvidia-cuda-nvcc==13.0.88
  nvidia-cuda-crt==13.0.88
  nvidia-nvvm==13.0.88
  nvidia-cuda-runtime==13.0.96
  nvidia-cuda-cccl==13.0.85
  nvidia-cublas==13.0.2.14
  nvidia-nvtx==13.0.85
)
readonly TOOLKIT="$ATTENDANT_CACHE/cuda-$VERSION"

fetch() {
  local work wheel library
  [ ! -x "$TOOLKIT/bin/nvcc" ] || return 0
  say "fetching CUDA $VERSION's compiler and libraries (0.5 GB) into $TOOLKIT"
  make_work "$TOOLKIT"
  download_wheels "$work" "${PACKAGES[@]}"
  for wheel in "$work"/*.whl; do
    unzip -q -o "$wheel" 'nvidia/*' -d "$work/root"
  done
  # The linker looks for names without a version, and CMake for lib64.
  for library in "$work/root/nvidia/cu13/lib/"*.so.*; do
    ln -sf "$(basename "$library")" "${library%%.so.*}.so"
  done
  ln -s lib "$work/root/nvidia/cu13/lib64"
  chmod +x "$work/root/nvidia/cu13/bin/"* "$work/root/nvidia/cu13/nvvm/bin/cicc"
  "$work/root/nvidia/cu13/bin/nvcc" --version >/dev/null || die "the unpacked nvcc does not run"
  rm -rf "$TOOLKIT"
  mv "$work/root/nvidia/cu13" "$TOOLKIT"
}

heed_signals
[ -x "$TOOLKIT/bin/nvcc" ] || with_lock "$TOOLKIT" fetch
ln -sfn "cuda-$VERSION" "$ATTENDANT_CACHE/cuda"
