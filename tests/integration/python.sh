#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs Python with what requirements.txt lists, from a virtual environment that is made once for each of its
# contents: tests/integration/python.sh -m pytest tests/integration
# ATTENDANT_REQUIREMENTS names another file.
set -euo pipefail
readonly SCRIPT=python
here=$(dirname "$(readlink -f "$0")")
# shellcheck source-path=SCRIPTDIR source=../../deploy/common.sh
. "$here/../../deploy/common.sh"

requirements=${ATTENDANT_REQUIREMENTS:-$here/requirements.txt}
key=$({ python3 --version; cat "$requirements"; } | sha256sum | cut -c1-12)
venv="$ATTENDANT_CACHE/pyenv-test-$key"

make_venv() {
  [ ! -e "$venv/.complete" ] || return 0
  say "making the Python environment of the integration tests in $venv" >&2
  rm -rf "$venv"
  interruptible setsid python3 -m venv "$venv"
  interruptible setsid "$venv/bin/pip" install --quiet -r "$requirements" >&2
  touch "$venv/.complete"
}

heed_signals
[ -e "$venv/.complete" ] || with_lock "$venv" make_venv
# Tests send SIGINT, which a shell ignores in what it starts in the background.
exec env --default-signal=INT "$venv/bin/python" "$@"
