#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the container image `attendant` and proves it: the server out of the image embeds real sentences, its
# health check passes, and SIGTERM drains it with exit code 0.
#
#   deploy/image.sh [--cuda] [--output FILE.tar] [--sbom FILE.json]
#     --cuda     the image `attendant-cuda`, with the back end for NVIDIA GPUs; what proves it needs none
#     FILE.tar   the image, for `docker load`
#     FILE.json  what the image holds, as CycloneDX
#
# With a Docker engine it is built there. Without one, buildah builds it as root (chroot isolation, vfs storage, all
# kept in root's cache folder), and a Debian 13 root made by debootstrap stands in for debian:trixie-slim.
set -euo pipefail
readonly SCRIPT=image
here=$(dirname "$(readlink -f "$0")")
root=$(dirname "$here")
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$here/common.sh"

IMAGE=attendant
target=cpu
readonly WORK="$ATTENDANT_CACHE/image"
readonly SENTENCES=("What is the capital of Germany?" "Berlin is the capital of Germany."
                    "A cat sat on the mat, purring.")
readonly MAX_MEGABYTES=180  # over the base image; without --cuda
# Variables that sudo is to keep: by which downloads find their servers and trust them.
readonly FOR_DOWNLOADS=(PIP_{CERT,CONFIG_FILE,INDEX_URL,EXTRA_INDEX_URL,TRUSTED_HOST,PROXY} REQUESTS_CA_BUNDLE
                        SSL_CERT_{FILE,DIR} {http,https,no}_proxy {HTTP,HTTPS,NO}_PROXY)
readonly COSINES="0.814024 0.022497 0.022423"  # of (1,2) (1,3) (2,3), by sentence-transformers
run_dir=""
container=""
server=""

# What differs between the two ways: build, export_image, megabytes_over_base, read_file PATH, start_server,
# ask ARGUMENTS.., stop_server, clean_up.

use_docker() {
  build() { DOCKER_BUILDKIT=1 docker build --target "$target" --tag "$IMAGE" "$root"; }
  export_image() { docker save --output "$1" "$IMAGE"; }
  megabytes_over_base() {
    docker history --human=false --format '{{.Size}}' "$IMAGE" |
      awk '$1 > 0 {sum += base; base = $1} END {printf "%d", sum / 1e6}'
  }
  read_file() { docker run --rm --entrypoint cat "$IMAGE" "$1"; }
  start_server() { container=$(docker run --detach --volume "$1:/models/minilm:ro" "$IMAGE" --dtype=f32); }
  ask() { docker exec "$container" attendant "$@"; }
  health_check() { docker image inspect --format '{{join .Config.Healthcheck.Test "\n"}}' "$IMAGE"; }
  stop_server() {
    docker stop --time 60 "$container" >/dev/null
    return "$(docker inspect --format '{{.State.ExitCode}}' "$container")"
  }
  server_log() { docker logs "$container"; }
  clean_up() { [ -z "$container" ] || docker rm --force "$container" >/dev/null; }
}

use_buildah() {
  export BUILDAH_ISOLATION=chroot TMPDIR="$WORK/tmp"
  mkdir -p "$TMPDIR"
  build() {
    [ ! -d "$WORK/storage" ] || store rm --all >/dev/null  # of a run that was killed
    make_base
    build_image
  }
  export_image() { rm -f "$1" && store push --quiet "$IMAGE" "docker-archive:$1:$IMAGE:latest"; }
  megabytes_over_base() { echo $(($(megabytes "$IMAGE") - $(megabytes debian:trixie-slim))); }
  read_file() { store run "$container" -- cat "$1"; }
  start_server() { run_server "$1"; }
  ask() { store run "$container" -- attendant "$@" "--server=127.0.0.1:$(port grpc)"; }
  health_check() { image_config Healthcheck Test; }
  stop_server() {
    kill -TERM "$(cat "$run_dir/pid")"
    wait "$server"
  }
  server_log() { cat "$run_dir/log"; }
  clean_up() {
    [ -z "$run_dir" ] || [ ! -e "$run_dir/pid" ] || kill -KILL "$(cat "$run_dir/pid")" 2>/dev/null || true
    [ -z "$server" ] || wait "$server" 2>/dev/null || true
    [ -z "$container" ] || store rm "$container" >/dev/null
    rm -rf "$run_dir"
  }
}

store() { buildah --storage-driver vfs --root "$WORK/storage" --runroot "$WORK/run" "$@"; }

megabytes() {  # megabytes IMAGE: from the size that buildah shows, as 1.35 GB
  store images --format '{{.Size}}' "$1" | awk '{printf "%d", $2 == "GB" ? $1 * 1000 : $1} {exit}'
}

# The base image, made again each month and when the mirror changes.
make_base() {
  local mirror key base="$TMPDIR/base"
  mirror=$(debian_mirror)
  [ -n "$mirror" ] || die "no Debian mirror in this machine's apt sources"
  key="$mirror $(date +%Y-%m)"
  [ "$(cat "$WORK/base" 2>/dev/null)" != "$key" ] || return 0
  say "making the base image: Debian 13 by debootstrap from $mirror"
  rm -rf "$WORK/storage" "$WORK/run" "$base"
  debootstrap --variant=minbase --include=ca-certificates trixie "$base" "$mirror" >"$WORK/debootstrap.log" 2>&1 ||
    { tail -n 20 "$WORK/debootstrap.log"; die "debootstrap failed"; }
  rm -rf "$base"/var/cache/apt/archives/*.deb "$base"/var/lib/apt/lists/*
  container=$(store from --pull-never scratch)
  store add --quiet "$container" "$base" / >/dev/null
  store commit --quiet --rm "$container" debian:trixie-slim >/dev/null
  container=""
  rm -rf "$base"
  printf '%s\n' "$key" >"$WORK/base"
}

# Everything that the image is made of, as one key.
context_key() {
  (cd "$root" && sed -n 's/^!//p' .dockerignore | LC_ALL=C sort | xargs tar --sort=name --mtime=@0 --owner=0 \
    --group=0 --numeric-owner --exclude=__pycache__ -c Dockerfile .dockerignore) | cat - "$WORK/base" |
    sha256sum | cut -c1-16
}

# The stages that install packages have names of their own, so that they outlive the pruning of old layers.
build_image() {
  local key stage
  key=$(context_key)
  [ -z "$(store images --quiet --filter "reference=$IMAGE:$key" 2>/dev/null)" ] || return 0
  for stage in toolchain runtime; do build_stage "$IMAGE-$stage" --target "$stage"; done
  store images --format '{{.Name}}:{{.Tag}}' | { grep "^localhost/$IMAGE:" || true; } |
    while read -r old; do store rmi "$old" >/dev/null; done
  build_stage "$IMAGE:latest" --target "$target" --tag "$IMAGE:$key"
  store rmi --prune >/dev/null
}

build_stage() {  # build_stage TAG OPTIONS...
  local tag=$1
  shift
  # pip in there is to trust whom pip out here was told to trust.
  [ -z "${PIP_CERT:-}" ] || set -- "$@" --volume "$PIP_CERT:$PIP_CERT:ro" --build-arg "PIP_CERT=$PIP_CERT"
  store build --layers --pull-never --format docker --tag "$tag" "$@" --file "$root/Dockerfile" "$root"
}

image_config() {  # image_config KEY...: the list found there in the image's configuration, an item per line
  store inspect --type image "$IMAGE" |
    python3 -c 'import functools, json, sys
config = json.load(sys.stdin)["Docker"]["config"]
print("\n".join(functools.reduce(lambda value, key: value[key], sys.argv[1:], config)))' "$@"
}

# The image's own entry point as its own user, but on free ports of the loopback interface: without a network
# of its own, the container shares this machine's.
run_server() {
  local command
  mapfile -t command < <(image_config Entrypoint)
  run_dir=$(mktemp -d "$TMPDIR/run.XXXXXX")
  chmod 777 "$run_dir"
  container=$(store from --pull-never "$IMAGE")
  # shellcheck disable=SC2016
  store run --volume "$1:/models/minilm:ro" --volume "$run_dir:/run/attendant" "$container" -- \
    sh -c 'echo $$ >/run/attendant/pid; exec "$@"' sh "${command[@]}" --listen=127.0.0.1:0 \
    --http_listen=127.0.0.1:0 --dtype=f32 --port_file=/run/attendant/ports >"$run_dir/log" 2>&1 &
  server=$!
  wait_until 60 listening
}

listening() {
  [ -s "$run_dir/ports" ] && return 0
  kill -0 "$server" || die "the server ended"
  return 1
}

port() { sed -n "s/^$1=//p" "$run_dir/ports"; }

check_user() {
  local user
  user=$(awk '/^Uid:/ {print $2}' "/proc/$1/status")
  [ "$user" != 0 ] || die "the server runs as root"
}

same_cosines() {
  python3 -c 'import json, sys
cosines = json.load(sys.stdin)["cosines"]
actual = [cosines[0][1], cosines[0][2], cosines[1][2]]
print("cosines", *("%.6f" % value for value in actual))
sys.exit(any(abs(a - float(e)) > 1e-5 for a, e in zip(actual, sys.argv[1:], strict=True)))' "$@"
}

check() {
  local model health drawn
  model=$("$here/fetch-model.sh")
  say "starting the server out of the image"
  start_server "$model"
  ask health --wait=60s
  [ ! -e "$run_dir/pid" ] || check_user "$(cat "$run_dir/pid")"
  mapfile -t health < <(health_check)
  [ "${health[*]}" = "CMD attendant health" ] || die "the image's health check is '${health[*]}'"
  ask embed --similarity "${SENTENCES[@]}"
  # shellcheck disable=SC2086
  ask embed --similarity --json "${SENTENCES[@]}" | same_cosines $COSINES || die "the cosines should be $COSINES"
  say "drawing a heatmap in it: it has its fonts"
  drawn=$(ask heatmap --layer=3 --out=/tmp/map.png "${SENTENCES[0]}" 2>&1) || die "no heatmap: $drawn"
  case "$drawn" in *Pango* | *Fontconfig* | *CRITICAL*) die "the heatmap: $drawn" ;; esac
  say "listing what it holds"
  read_file /var/lib/dpkg/status | "$here/sbom.py" --version "$(version)" >"$WORK/sbom.json"
  say "stopping it by SIGTERM"
  stop_server || die "the server ended with exit code $?"
  server=""
  say "the image is well: real embeddings, healthy, drained with exit code 0"
}

version() { sed -n 's/^project(attendant VERSION \([0-9.]*\).*/\1/p' "$root/CMakeLists.txt"; }

check_size() {
  local size
  size=$(megabytes_over_base)
  say "the image is $size MB over its base"
  [ "$target" != cpu ] || [ "$size" -le "$MAX_MEGABYTES" ] || die "the limit is $MAX_MEGABYTES MB"
}

# Under sudo the file would be root's, and its user could not replace it.
hand_over() {
  [ "$(id -u)" != 0 ] || [ -z "${SUDO_UID:-}" ] || chown "$SUDO_UID:${SUDO_GID:-}" "$1"
  say "wrote $1"
}

on_exit() {
  local code=$?
  [ $code = 0 ] || [ -z "$container" ] || server_log >&2 || true
  clean_up
  exit $code
}

main() {
  local output="" sbom="" arguments=("$@")
  while [ $# -gt 0 ]; do
    case "$1" in
      --cuda) target=cuda IMAGE=attendant-cuda ;;
      --output) output=$(realpath -m "${2:?--output needs a file}"); shift ;;
      --sbom) sbom=$(realpath -m "${2:?--sbom needs a file}"); shift ;;
      -h | --help) show_help ;;
      *) die "unknown argument '$1'; --help tells more" ;;
    esac
    shift
  done
  if command -v docker >/dev/null && docker info >/dev/null 2>&1; then
    use_docker
  else
    [ "$(id -u)" = 0 ] || command -v sudo >/dev/null || die "needs root for buildah: run as root, or install sudo"
    # Root has a cache of its own: in the user's, the user could not replace or remove what root has put there.
    [ "$(id -u)" = 0 ] || exec sudo "--preserve-env=$(IFS=, && echo "${FOR_DOWNLOADS[*]}")" "$0" "${arguments[@]}"
    "$here/install-deps.sh" image quickstart
    use_buildah
  fi
  mkdir -p "$WORK"
  exec 9>"$WORK/lock"
  flock 9
  trap on_exit EXIT
  say "building the image"
  build
  check_size
  check
  [ -z "$sbom" ] || { cp "$WORK/sbom.json" "$sbom" && hand_over "$sbom"; }
  [ -z "$output" ] || { export_image "$output" && hand_over "$output"; }
}

main "$@"
