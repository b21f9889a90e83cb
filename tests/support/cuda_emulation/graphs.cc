// SPDX-License-Identifier: Apache-2.0
#include "tests/support/cuda_emulation/machine.h"

using attendant::cuda_emulation::Call;
using attendant::cuda_emulation::Machine;
using attendant::cuda_emulation::ReleasingCall;
using attendant::cuda_emulation::ThisThread;

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  return Call(stream->device, [&](Machine& machine) {
    if (stream->recording != nullptr || ThisThread().capturing != nullptr) {
      return cudaErrorStreamCaptureUnsupported;
    }
    stream->recording = new CUgraph_st;
    stream->recording_failed = false;
    ThisThread().capturing = stream;
    ++machine.alive.graphs;
    return cudaSuccess;
  });
}

// Ends the recording also when it fails.
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  bool failed = true;
  const cudaError_t error = ReleasingCall(stream->device, [&](Machine& machine) {
    if (stream->recording == nullptr) return cudaErrorStreamCaptureUnmatched;
    *graph = stream->recording;
    failed = stream->recording_failed;
    stream->recording = nullptr;
    ThisThread().capturing = nullptr;
    if (failed) {
      delete *graph;
      *graph = nullptr;
      --machine.alive.graphs;
    }
    return failed ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
  });
  if (error != cudaSuccess && *graph != nullptr) {
    cudaGraphDestroy(*graph);
    *graph = nullptr;
  }
  return error;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return ReleasingCall(ThisThread().device, [&](Machine& machine) {
    delete graph;
    --machine.alive.graphs;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
  return Call(ThisThread().device, [&](Machine& machine) {
    *executable = new CUgraphExec_st{.device = ThisThread().device, .work = graph->work};
    ++machine.alive.executable_graphs;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  return ReleasingCall(ThisThread().device, [&](Machine& machine) {
    delete executable;
    --machine.alive.executable_graphs;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t) {
  return Call(executable->device, [](Machine&) { return cudaSuccess; });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  return Call(stream->device, [&](Machine& machine) {
    if (executable->device != stream->device) return cudaErrorInvalidResourceHandle;
    for (const auto& work : executable->work) {
      if (const cudaError_t error = Enqueue(machine, stream, work); error != cudaSuccess) {
        return error;
      }
    }
    return cudaSuccess;
  });
}
