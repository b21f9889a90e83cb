#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what Attendant needs on Debian 12 or 13, and says what it does. Run again, it finishes at once.
#
#   deploy/install-deps.sh [build] [test] [image]     (default: build)
#     build  compiler, libraries, oneDNN >= 3.7
#     test   what the tests use besides: Python with venv, iproute2, curl, ...
#     image  buildah and debootstrap, for deploy/image.sh
#
# oneDNN comes from the distribution where that has 3.7 or newer (Debian 13). Elsewhere Debian 13's source
# package is built once (about 35 CPU minutes) into $ATTENDANT_CACHE, default ~/.cache/attendant, and
# $ATTENDANT_CACHE/onednn then points at the installation; CMake looks there.
set -euo pipefail

readonly ONEDNN_VERSION=3.7.2+ds
readonly ONEDNN_FLAGS=(
  -DCMAKE_BUILD_TYPE=Release
  -DDNNL_CPU_RUNTIME=SEQ
  -DDNNL_EXPERIMENTAL_UKERNEL=ON
  -DDNNL_BUILD_TESTS=OFF
  -DDNNL_BUILD_EXAMPLES=OFF
  -DDNNL_BUILD_DOC=OFF
  -DONEDNN_BUILD_GRAPH=OFF
  -DONEDNN_ARCH_OPT_FLAGS=
  -DONEDNN_ENABLE_WORKLOAD=INFERENCE
  "-DONEDNN_ENABLE_PRIMITIVE=MATMUL;REORDER;LAYER_NORMALIZATION;SOFTMAX;ELTWISE;BINARY"
)
readonly CACHE="${ATTENDANT_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/attendant}"

say() { printf '[deps] %s\n' "$*"; }
die() { printf '[deps] error: %s\n' "$*" >&2; exit 1; }

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null; then sudo "$@"
  else die "needs root to install packages: run as root, or install sudo"; fi
}

installed() { dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q '^install ok installed'; }

apt_install() {
  local missing=() package
  for package in "$@"; do installed "$package" || missing+=("$package"); done
  [ ${#missing[@]} = 0 ] && return 0
  say "installing ${missing[*]}"
  if [ -z "${APT_UPDATED:-}" ]; then as_root apt-get update -qq || say "some package lists are out of reach; going on"; APT_UPDATED=1; fi
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# The mirror that this machine installs Debian from.
debian_mirror() {
  { cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2>/dev/null || true; } |
    awk '/^[[:space:]]*#/ {next}
         /^URIs:/ {print $2}
         /^deb / {for (i = 2; i <= NF; i++) if ($i ~ /^(https?|file|mirror\+file):/) print $i}' |
    awk '/\/debian\/?$/ && !found {print; found = 1}'
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
  (cd "$work" && dpkg-source --no-check -x onednn_*.dsc source >/dev/null)
}

build_onednn() {
  local key prefix work
  key="$ONEDNN_VERSION-$(printf '%s\n' "${ONEDNN_FLAGS[@]}" "$(g++ -dumpfullversion)" | sha256sum | cut -c1-12)"
  prefix="$CACHE/onednn-$key"
  if [ ! -e "$prefix/.complete" ]; then
    apt_install dpkg-dev debian-archive-keyring
    work="$CACHE/onednn-build-$key"
    if [ ! -d "$work/source" ]; then
      rm -rf "$work"
      say "fetching oneDNN $ONEDNN_VERSION, Debian 13's source package"
      fetch_onednn_source "$work"
    fi
    say "building oneDNN $ONEDNN_VERSION once (about 20 minutes on two cores) into $prefix"
    cmake -S "$work/source" -B "$work/build" -G Ninja "${ONEDNN_FLAGS[@]}" \
      "-DCMAKE_INSTALL_PREFIX=$prefix" >"$work/configure.log" 2>&1 ||
      { tail -n 30 "$work/configure.log"; die "configuring oneDNN failed"; }
    cmake --build "$work/build" >"$work/build.log" 2>&1 ||
      { tail -n 40 "$work/build.log"; die "building oneDNN failed"; }
    cmake --install "$work/build" >"$work/install.log" 2>&1 || die "installing oneDNN failed: $work/install.log"
    touch "$prefix/.complete"
    rm -rf "$work"
  fi
  ln -sfn "onednn-$key" "$CACHE/onednn"
}

provide_onednn() {
  if dpkg --compare-versions "$(onednn_candidate)" ge 3.7 2>/dev/null; then
    apt_install libdnnl-dev
  else
    build_onednn
  fi
}

main() {
  local part
  [ -r /etc/debian_version ] || die "this script knows Debian 12 and 13 only"
  [ $# -gt 0 ] || set -- build
  for part in "$@"; do
    case "$part" in
      build)
        apt_install ca-certificates g++ cmake ninja-build pkg-config protobuf-compiler protobuf-compiler-grpc \
          libgrpc++-dev libprotobuf-dev libabsl-dev prometheus-cpp-dev libcivetweb-dev libspdlog-dev libfmt-dev \
          nlohmann-json3-dev libicu-dev zlib1g-dev libgtest-dev libgmock-dev libbenchmark-dev
        provide_onednn ;;
      test) apt_install python3 python3-venv curl unzip git iproute2 libb64-0d ;;
      image) apt_install buildah debootstrap fuse-overlayfs curl ;;
      *) die "unknown part '$part' (build, test, image)" ;;
    esac
  done
}

main "$@"
