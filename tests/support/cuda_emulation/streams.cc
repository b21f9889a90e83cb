// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/support/cuda_emulation/machine.h"

namespace attendant::cuda_emulation {
namespace {

bool IsBlocked(const Piece& piece) {
  return piece.wait_for != nullptr && piece.event->done < piece.record;
}

// Runs the stream's first piece. REQUIRES: it is not blocked.
void RunFirst(Machine& machine, CUstream_st* stream) {
  const Piece piece = std::move(stream->queue.front());
  stream->queue.pop_front();
  Device& device = machine.devices[static_cast<size_t>(stream->device)];
  if (piece.work && device.lost == cudaSuccess) {
    const auto failing = machine.failing_work.find(machine.work_run++);
    if (failing == machine.failing_work.end()) {
      piece.work();
    } else {
      device.lost = failing->second;
    }
  }
  if (piece.event != nullptr && piece.wait_for == nullptr) {
    piece.event->done = std::max(piece.event->done, piece.record);
    piece.event->time = std::chrono::steady_clock::now();
  }
}

// Runs one piece that brings `stream` forward: its own first, or one of the stream that this waits
// for.
void Step(Machine& machine, CUstream_st* stream) {
  while (IsBlocked(stream->queue.front())) stream = stream->queue.front().wait_for;
  RunFirst(machine, stream);
}

void StepAnywhere(Machine& machine) {
  std::vector<CUstream_st*> ready;
  for (CUstream_st* stream : machine.streams) {
    if (!stream->queue.empty() && !IsBlocked(stream->queue.front())) ready.push_back(stream);
  }
  RunFirst(machine, ready[machine.random() % ready.size()]);
}

template <typename Done>
void RunUntil(Machine& machine, CUstream_st* stream, Done done) {
  while (!done()) {
    if (machine.options.schedule == Schedule::kShuffled) {
      StepAnywhere(machine);
    } else {
      Step(machine, stream);
    }
  }
}

cudaError_t FailRecording(CUstream_st* stream, cudaError_t error) {
  stream->recording_failed = true;
  return error;
}

}  // namespace

cudaError_t RefuseWhileCapturing() {
  CUstream_st* stream = ThisThread().capturing;
  return stream == nullptr ? cudaSuccess : FailRecording(stream, cudaErrorStreamCaptureUnsupported);
}

cudaError_t Enqueue(Machine&, CUstream_st* stream, std::function<void()> work) {
  if (stream->recording != nullptr) {
    if (stream->recording_failed) return cudaErrorStreamCaptureInvalidated;
    stream->recording->work.push_back(std::move(work));
  } else {
    stream->queue.push_back({.work = std::move(work), .event = nullptr});
  }
  return cudaSuccess;
}

cudaError_t Drain(Machine& machine, CUstream_st* stream) {
  RunUntil(machine, stream, [&] { return stream->queue.empty(); });
  return machine.devices[static_cast<size_t>(stream->device)].lost;
}

void RunUntilDone(Machine& machine, const EventState& event) {
  const int64_t record = event.recorded;
  RunUntil(machine, event.stream, [&] { return event.done >= record; });
}

}  // namespace attendant::cuda_emulation

using namespace attendant::cuda_emulation;

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  return Call(ThisThread().device, [&](Machine& machine) {
    *stream = new CUstream_st{.device = ThisThread().device, .queue = {}};
    machine.streams.push_back(*stream);
    ++machine.alive.streams;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return ReleasingCall(stream->device, [&](Machine& machine) {
    Drain(machine, stream);
    std::erase(machine.streams, stream);
    --machine.alive.streams;
    if (ThisThread().capturing == stream) ThisThread().capturing = nullptr;
    if (stream->recording != nullptr) {
      delete stream->recording;
      --machine.alive.graphs;
    }
    delete stream;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return Call(stream->device, [&](Machine& machine) {
    if (stream->recording != nullptr) {
      return FailRecording(stream, cudaErrorStreamCaptureUnsupported);
    }
    return Drain(machine, stream);
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return Call(stream->device, [&](Machine&) {
    if (stream->recording != nullptr) return FailRecording(stream, cudaErrorStreamCaptureIsolation);
    if (event->state->stream == nullptr) return cudaSuccess;  // never recorded
    stream->queue.push_back({.work = nullptr,
                             .event = event->state,
                             .record = event->state->recorded,
                             .wait_for = event->state->stream});
    return cudaSuccess;
  });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return Call(ThisThread().device, [&](Machine& machine) {
    *event = new CUevent_st{.device = ThisThread().device, .state = std::make_shared<EventState>()};
    (*event)->state->timed = (flags & cudaEventDisableTiming) == 0;
    ++machine.alive.events;
    return cudaSuccess;
  });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return ReleasingCall(event->device, [&](Machine& machine) {
    delete event;
    --machine.alive.events;
    return cudaSuccess;
  });
}

// Within a graph that is being recorded an event would belong to the graph: nobody needs that.
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return Call(stream->device, [&](Machine&) {
    if (stream->recording != nullptr) {
      return FailRecording(stream, cudaErrorStreamCaptureUnsupported);
    }
    event->state->stream = stream;
    stream->queue.push_back(
        {.work = nullptr, .event = event->state, .record = ++event->state->recorded});
    return cudaSuccess;
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return Call(event->device, [&](Machine& machine) {
    RunUntilDone(machine, *event->state);
    return machine.devices[static_cast<size_t>(event->device)].lost;
  });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return Call(end->device, [&](Machine&) {
    if (!start->state->timed || !end->state->timed || start->state->recorded == 0 ||
        end->state->recorded == 0) {
      return cudaErrorInvalidResourceHandle;
    }
    if (start->state->done < start->state->recorded || end->state->done < end->state->recorded) {
      return cudaErrorNotReady;
    }
    *milliseconds =
        std::chrono::duration<float, std::milli>(end->state->time - start->state->time).count();
    return cudaSuccess;
  });
}
