#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what Attendant needs on Debian 12 or 13, and says what it does. Run again, it finishes at once.
#
#   deploy/install-deps.sh [build] [quickstart] [test] [image] [clang] [cuda]     (default: build)
#     build       compiler, libraries, oneDNN >= 3.7, what cpack makes a package with
#     quickstart  what shows it at work besides: Python to unpack a model, curl
#     test        what the tests use besides: a compiler cache, ...
#     image       buildah and debootstrap, for deploy/image.sh
#     clang       for the presets clang-strict and fuzz
#     cuda        a CUDA compiler for kernels/cuda, unless there is one (13.0 or newer); needs no GPU
#
# oneDNN comes from the distribution where that has 3.7 or newer (Debian 13). Elsewhere Debian 13's source
# package is built once (4 minutes on two threads of a Xeon) into $ATTENDANT_CACHE, default
# ~/.cache/attendant, and $ATTENDANT_CACHE/onednn then points at the installation; CMake looks there.
set -euo pipefail
readonly SCRIPT=deps
here=$(dirname "$(readlink -f "$0")")
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$here/common.sh"

readonly ONEDNN_VERSION=3.7.2+ds
# The compiled code only generates the kernels, at run time: -O1 compiles faster and computes as fast. Most of it is not
# optimized at all (onednn/compiler.sh), and shared headers are compiled once (onednn/headers.cmake).
readonly ONEDNN_FLAGS=(
  -DCMAKE_BUILD_TYPE=Release
  "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG"
  -DDNNL_CPU_RUNTIME=SEQ
  -DDNNL_EXPERIMENTAL_UKERNEL=ON
  -DDNNL_BUILD_TESTS=OFF
  -DDNNL_BUILD_EXAMPLES=OFF
  -DDNNL_BUILD_DOC=OFF
  -DONEDNN_BUILD_GRAPH=OFF
  -DONEDNN_ARCH_OPT_FLAGS=
  -DONEDNN_ENABLE_WORKLOAD=INFERENCE
  "-DONEDNN_ENABLE_PRIMITIVE=MATMUL;REORDER"
  -DONEDNN_ENABLE_GEMM_KERNELS_ISA=NONE
  "-DCMAKE_SHARED_LINKER_FLAGS=-Wl,--no-undefined"
)
# Sources under src/cpu of primitives that are not enabled. oneDNN would compile them all the same: two thirds of
# the time. What matmul and reorder do use of them stays; --no-undefined tells when a new version uses more.
readonly ONEDNN_UNUSED='conv_|_conv|convolution|deconv|pool|/rnn/|(batch|group|instance|layer)_norm|/lrn/|_lrn|inner_product|resampling|prelu|shuffle|softmax|/(ref|jit_uni)_(eltwise|eltwise_int|binary|reduction)\.|_(reduction|binary)_kernel'
readonly ONEDNN_USED='_list\.cpp$|jit_uni_convert|injector|/(jit_)?gemm_inner_product_utils\.cpp$'
# The lists of those primitives, cpu_*_list.cpp, are left without their headers, which nothing of them uses then.
# Weights are reordered from f32 to f32 and bf16, and from s8 to s8. The lists of the other reorders are left empty.
readonly ONEDNN_REORDERS='regular_(f32_f32|f32_bf16|s8)\.cpp$'

installed() { dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q '^install ok installed'; }

apt_update() {
  [ -z "${APT_UPDATED:-}" ] || return 0
  as_root apt-get update -qq || say "some package lists are out of reach; going on"
  APT_UPDATED=1
}

apt_install() {
  local missing=() package
  for package in "$@"; do installed "$package" || missing+=("$package"); done
  [ ${#missing[@]} = 0 ] && return 0
  say "installing ${missing[*]}"
  apt_update
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" \
    >/dev/null
}

# While this file is there, dpkg starts no service.
readonly POLICY=/usr/sbin/policy-rc.d
policy_made=""

remove_policy() {
  [ -z "$policy_made" ] || as_root rm -f "$POLICY"
  policy_made=""
}

# install_idle SERVICE...: packages of services, which are neither started nor enabled: tests run their programs.
install_idle() {
  local service missing=()
  for service in "$@"; do installed "$service" || missing+=("$service"); done
  [ ${#missing[@]} = 0 ] && return 0
  if [ ! -e "$POLICY" ]; then
    policy_made=1
    printf '#!/bin/sh\nexit 101\n' | as_root tee "$POLICY" >/dev/null
    as_root chmod +x "$POLICY"
  fi
  apt_install "${missing[@]}" || die "cannot install ${missing[*]}"
  remove_policy
  ! command -v systemctl >/dev/null || as_root systemctl disable --quiet "${missing[@]}"
}

onednn_candidate() { LC_ALL=C apt-cache policy libdnnl-dev 2>/dev/null | awk '/Candidate:/ {print $2}'; }

fetch_onednn_source() {  # fetch_onednn_source WORK
  local work=$1 mirror keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  mirror=$(debian_mirror)
  [ -n "$mirror" ] || die "no Debian mirror in this machine's apt sources"
  mkdir -p "$work"/{lists/partial,cache/archives/partial}
  printf 'deb-src [signed-by=%s] %s trixie main\n' "$keyring" "$mirror" >"$work/sources.list"
  local apt=(-o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=-
             -o "Dir::State::lists=$work/lists" -o "Dir::Cache=$work/cache" -o APT::Sandbox::User=root)
  apt-get "${apt[@]}" update -qq
  (cd "$work" && apt-get "${apt[@]}" source -qq --download-only "onednn=$(
    LC_ALL=C apt-cache "${apt[@]}" showsrc onednn |
      awk -v wanted="$ONEDNN_VERSION" '/^Version:/ && index($2, wanted) && !found {print $2; found = 1}')")
  (cd "$work" && dpkg-source --no-check -x onednn_*.dsc source.partial >/dev/null)
  (cd "$work/source.partial/src/cpu" && find . -name '*.cpp' | grep -E "$ONEDNN_UNUSED" | grep -vE "$ONEDNN_USED" |
    xargs rm --)
  (cd "$work/source.partial/src/cpu" && sed -i -E '/^#include "cpu\//{/cpu_engine\.hpp/!d}' cpu_*_list.cpp)
  (cd "$work/source.partial/src/cpu/reorder" && find . -name 'cpu_reorder_*.cpp' | grep -vE "$ONEDNN_REORDERS" |
    xargs sed -i -E '/REG_(SR|FAST)|CPU_REORDER_INSTANCE/d')
  mv "$work/source.partial" "$work/source"
}

# make_onednn KEY PREFIX PARTS
make_onednn() {
  local key=$1 prefix=$2 parts=$3 work="$ATTENDANT_CACHE/onednn-build-$1"
  [ ! -e "$prefix/.complete" ] || return 0
  apt_install debian-archive-keyring
  if [ ! -d "$work/source" ]; then
    rm -rf "$work"
    say "fetching oneDNN $ONEDNN_VERSION, Debian 13's source package"
    fetch_onednn_source "$work"
  fi
  say "building oneDNN $ONEDNN_VERSION once into $prefix"
  cmake -S "$work/source" -B "$work/build" -G Ninja "${ONEDNN_FLAGS[@]}" \
    "-DCMAKE_CXX_COMPILER_LAUNCHER=$parts/compiler.sh" "-DCMAKE_PROJECT_INCLUDE=$parts/headers.cmake" \
    "-DCMAKE_INSTALL_PREFIX=$prefix" >"$work/configure.log" 2>&1 ||
    { tail -n 30 "$work/configure.log"; die "configuring oneDNN failed"; }
  with_progress "oneDNN" "$work/build.log" cmake --build "$work/build" ||
    { tail -n 40 "$work/build.log"; die "building oneDNN failed"; }
  cmake --install "$work/build" >"$work/install.log" 2>&1 || die "installing oneDNN failed: $work/install.log"
  touch "$prefix/.complete"
  rm -rf "$work"
}

build_onednn() {
  local key prefix parts="$here/onednn"
  key=$({
    printf '%s\n' "${ONEDNN_FLAGS[@]}" "$ONEDNN_UNUSED" "$ONEDNN_USED" "$ONEDNN_REORDERS" "$(g++ -dumpfullversion)"
    cat "$parts"/*
  } | sha256sum | cut -c1-12)
  key="$ONEDNN_VERSION-$key"
  prefix="$ATTENDANT_CACHE/onednn-$key"
  [ -e "$prefix/.complete" ] || with_lock "$prefix" make_onednn "$key" "$prefix" "$parts"
  ln -sfn "onednn-$key" "$ATTENDANT_CACHE/onednn"
}

provide_onednn() {
  [ -n "$(onednn_candidate)" ] || apt_update
  if dpkg --compare-versions "$(onednn_candidate)" ge 3.7 2>/dev/null; then
    apt_install libdnnl-dev
  else
    build_onednn
  fi
}

# Where CMake looks too (kernels/cuda/CMakeLists.txt).
has_cuda_compiler() {
  local nvcc version
  for nvcc in "${CUDACXX:-}" "$(command -v nvcc || true)" /usr/local/cuda/bin/nvcc; do
    [ -x "$nvcc" ] || continue
    version=$("$nvcc" --version | sed -n 's/.*release \([0-9.]*\),.*/\1/p')
    dpkg --compare-versions "$version" ge 13.0 && return 0
  done
  return 1
}

provide_cuda() {
  has_cuda_compiler && return 0
  apt_install ca-certificates python3 python3-venv unzip
  interruptible "$here/fetch-cuda.sh"
}

on_exit() {
  end_running
  remove_policy
}

main() {
  local part
  trap on_exit EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  case ${1-} in -h | --help) show_help ;; esac
  [ -r /etc/debian_version ] || die "this script knows Debian 12 and 13 only"
  [ $# -gt 0 ] || set -- build
  for part in "$@"; do
    case "$part" in
      build)
        # prometheus-cpp's CMake package looks for libcivetweb-dev; nothing links it.
        apt_install ca-certificates file dpkg-dev g++ cmake ninja-build pkg-config protobuf-compiler protobuf-compiler-grpc \
          libgrpc++-dev libprotobuf-dev libabsl-dev prometheus-cpp-dev libcivetweb-dev libspdlog-dev libfmt-dev \
          nlohmann-json3-dev libboost-dev libsimdjson-dev libcli11-dev libicu-dev libpango1.0-dev libssl-dev fonts-dejavu-core zlib1g-dev libgtest-dev libgmock-dev libbenchmark-dev
        provide_onednn ;;
      quickstart) apt_install ca-certificates curl python3 python3-venv ;;
      test)
        apt_install ccache iproute2 libb64-0d libfaketime openssl shellcheck systemd-container unzip
        install_idle haproxy prometheus ;;
      image) apt_install buildah debootstrap debian-archive-keyring ;;
      clang) apt_install clang ;;
      cuda) provide_cuda ;;
      *) die "unknown part '$part' (build, quickstart, test, image, clang, cuda)" ;;
    esac
  done
}

main "$@"
