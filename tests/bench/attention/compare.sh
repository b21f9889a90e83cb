#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Times every kind of attention and measures its memory from 32 to 16,384 tokens; writes attention.md (tables and what
# follows from them), attention.json, attention.svg and attention.png. About three minutes on two cores.
#
#   tests/bench/attention/compare.sh [--quick] [--output DIR] [--page FILE] [--under COMMAND] [-- FLAGS OF attention_compare]
#
# --quick stops at 1,024 tokens and measures for moments: the whole way in half a minute, with rough numbers.
# --page puts the tables between the marks of that Markdown file; tests/bench/attention/results/comparison.md was made so:
#   tests/bench/attention/compare.sh --page tests/bench/attention/results/comparison.md --output tests/bench/attention/results
# --under starts each kind's process under a command, e.g. "taskset -c 2,3". ATTENDANT_BIN_DIR names another build's bin/
# folder; then nothing is built.
set -euo pipefail
readonly SCRIPT=attention
here=$(dirname "$(readlink -f "$0")")
root=$(cd "$here/../../.." && pwd)
# shellcheck source-path=SCRIPTDIR source=../../../deploy/common.sh
. "$root/deploy/common.sh"

output="$root/build/attention" page="" under=() flags=()
while [ $# -gt 0 ]; do
  case "$1" in
    --quick) flags=(--lengths "32,64,128,256,512,1024" --seconds 0.02); shift ;;
    --output) output=$2; shift 2 ;;
    --page) page=$2; shift 2 ;;
    --under) read -ra under <<<"$2"; shift 2 ;;
    --) shift; break ;;
    *) die "unknown option $1" ;;
  esac
done

venv="$ATTENDANT_CACHE/attention-$({ python3 --version; cat "$here/requirements.txt"; } | sha256sum | cut -c1-12)"
make_venv() {
  [ ! -e "$venv/.complete" ] || return 0
  say "installing matplotlib into $venv" >&2
  interruptible setsid python3 -m venv "$venv"
  interruptible setsid "$venv/bin/pip" install --quiet -r "$here/requirements.txt" >&2
  touch "$venv/.complete"
}
heed_signals
[ -e "$venv/.complete" ] || with_lock "$venv" make_venv
if [ -z "${ATTENDANT_BIN_DIR:-}" ]; then
  interruptible "$root/deploy/install-deps.sh" build >&2
  say "building attention_compare" >&2
  build_release "$root" attention_compare
  ATTENDANT_BIN_DIR="$root/build/release/bin"
fi

# One process for each kind, so that none finds another's memory.
mkdir -p "$output"
lines=$(mktemp)
trap 'end_running; rm -f "$lines"' EXIT
kinds=(scaled_dot_product flash multi_head additive luong_dot luong_general luong_concat local strided linear linformer)
for kind in "${kinds[@]}"; do
  say "$kind" >&2
  interruptible setsid ${under[@]+"${under[@]}"} "$ATTENDANT_BIN_DIR/attention_compare" --kinds "$kind" \
    ${flags[@]+"${flags[@]}"} "$@" >>"$lines"
done
"$venv/bin/python" -B "$here/report.py" "$lines" "$output" ${page:+--page "$page"}
