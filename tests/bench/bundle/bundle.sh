#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Packs programs of build/release/bin with the libraries that they need, to measure on a machine where nothing is built or
# installed: x86-64 Linux with a C library as new as this machine's. Also the shapes that engine_bench computes.
#
#   tests/bench/bundle/bundle.sh FILE.tar.gz [PROGRAM ...]    (default: engine_bench attention_bench kernel_bench)
#   tar xzf FILE.tar.gz && bundle/bin/engine_bench --shape bundle/shapes/minilm
#
# libattendant_cuda.so is a program here: libexec/ takes it, where attendant-server looks. It needs the machine's cuBLASLt.
# ATTENDANT_BIN_DIR names another build's bin/ folder.
set -euo pipefail
readonly SCRIPT=bundle
here=$(dirname "$(readlink -f "$0")")
root=$(cd "$here/../../.." && pwd)
# shellcheck source-path=SCRIPTDIR source=../../../deploy/common.sh
. "$root/deploy/common.sh"

# Those of the C library and the compiler are the machine's, as is what comes with a GPU's driver and toolkit.
readonly LEFT_OUT='/(ld-linux[^/]*|lib(c|m|dl|rt|pthread|resolv|stdc\+\+|gcc_s|cuda|cudart|cublas|cublasLt))\.so[^/]*$'

libraries_of() { ldd "$@" | awk '$2 == "=>" {print $3 ~ /^\// ? $3 : "/" $1}' | sort -u | { grep -Ev "$LEFT_OUT" || true; }; }

# The program with its libraries before the system's.
write_starter() {
  cat >"$1" <<'STARTER'
#!/bin/sh
bundle=$(cd "$(dirname "$0")/.." && pwd)
LD_LIBRARY_PATH="$bundle/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" exec "$bundle/libexec/$(basename "$0")" "$@"
STARTER
  chmod +x "$1"
}

case "${1:-}" in '' | -h | --help) show_help ;; esac
file=$1
shift
[ $# -gt 0 ] || set -- engine_bench attention_bench kernel_bench
bin=${ATTENDANT_BIN_DIR:-$root/build/release/bin}
work=$(mktemp -d)
heed_signals
trap 'end_running; rm -rf "$work"' EXIT
mkdir -p "$work"/bundle/{bin,lib,libexec}
for program in "$@"; do
  [ -f "$bin/$program" ] || die "no $program in $bin: build it first"
  strip -o "$work/bundle/libexec/$program" "$bin/$program"
  case "$program" in *.so) ;; *) write_starter "$work/bundle/bin/$program" ;; esac
done
libraries_of "$work"/bundle/libexec/* | while read -r library; do
  [ -e "$library" ] || die "${library#/}: not found"
  strip -o "$work/bundle/lib/$(basename "$library")" "$library"
done
cp -r "$here/../shapes" "$work/bundle/"
interruptible tar czf "$file" -C "$work" bundle
say "$file: $(du -h "$file" | cut -f1)"
