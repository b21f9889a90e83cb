# SPDX-License-Identifier: Apache-2.0
# The server and the command line on Debian 13, from its packages only. The build needs BuildKit:
#   DOCKER_BUILDKIT=1 docker build -t attendant .
# Mount models under /models, a folder each:
#   docker run -p 127.0.0.1:8001:8001 -p 127.0.0.1:8002:8002 -v /path/to/all-MiniLM-L6-v2:/models/minilm:ro attendant

FROM debian:trixie-slim AS toolchain
COPY deploy/common.sh deploy/install-deps.sh /setup/
RUN export DEBIAN_FRONTEND=noninteractive && \
    apt-get update -qq && apt-get install -y -qq --no-install-recommends ccache >/dev/null && \
    /setup/install-deps.sh build && rm -rf /var/lib/apt/lists/*

FROM toolchain AS build
COPY . /src
RUN --mount=type=cache,target=/ccache \
    export CCACHE_DIR=/ccache && \
    cmake --preset release -S /src -B /build -DATTENDANT_BUILD_TESTS=OFF -DATTENDANT_UNITY=ON && \
    cmake --build /build --target attendant-server attendant && \
    install -s -D -t /out /build/bin/attendant-server /build/bin/attendant && rm -rf /build

# Only for the target `cuda`: the back end for NVIDIA GPUs, alone.
FROM toolchain AS build-cuda
# Of a network whose proxy signs for the package index: a bundle of certificates that is there.
ARG PIP_CERT
COPY deploy/fetch-cuda.sh /setup/
RUN export DEBIAN_FRONTEND=noninteractive ATTENDANT_CACHE=/opt/attendant && \
    apt-get update -qq && /setup/install-deps.sh cuda && rm -rf /var/lib/apt/lists/*
COPY . /src
RUN export ATTENDANT_CACHE=/opt/attendant && \
    cmake -S /src/kernels -B /build -G Ninja -DATTENDANT_CUDA=ON -DATTENDANT_BUILD_TESTS=OFF && \
    cmake --build /build --target attendant_cuda && \
    install -s -D -t /out /build/bin/libattendant_cuda.so && rm -rf /build && \
    install -D -t /out /opt/attendant/cuda/lib/libcublasLt.so.13

FROM debian:trixie-slim AS runtime
RUN export DEBIAN_FRONTEND=noninteractive && \
    apt-get update -qq && apt-get install -y -qq --no-install-recommends \
      ca-certificates fonts-dejavu-core libabsl20240722 libdnnl3.6 libfmt10 libgrpc++1.51t64 libicu76 libpangocairo-1.0-0 \
      libprometheus-cpp-core1.0 libprotobuf32t64 libsimdjson25 libspdlog1.15 libssl3t64 zlib1g >/dev/null && \
    apt-get clean && rm -rf /var/lib/apt/lists/* && \
    useradd --uid 10001 --user-group --no-create-home --shell /usr/sbin/nologin attendant && mkdir /models

FROM runtime AS cpu
COPY --from=build /out/attendant-server /out/attendant /usr/local/bin/
USER 10001:10001
# The user has no home; Fontconfig, for heatmaps, complains where it cannot keep its cache.
ENV XDG_CACHE_HOME=/tmp
VOLUME /models
EXPOSE 8001 8002
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD ["attendant", "health"]
ENTRYPOINT ["attendant-server", "--listen=0.0.0.0:8001", "--http_listen=0.0.0.0:8002", "--model_repository=/models"]

# DOCKER_BUILDKIT=1 docker build --target cuda: the same with GPUs, for hosts with NVIDIA's container toolkit
# (docker run --gpus all).
FROM cpu AS cuda
COPY --from=build-cuda /out/libattendant_cuda.so /out/libcublasLt.so.13 /usr/local/lib/attendant/
ENV LD_LIBRARY_PATH=/usr/local/lib/attendant NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility

# What is built without a target.
FROM cpu
