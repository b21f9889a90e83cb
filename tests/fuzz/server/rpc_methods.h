// SPDX-License-Identifier: Apache-2.0
#pragma once

// The methods that the harnesses call with bytes of any kind, by the protocol. The first byte of an
// input chooses one: append only, or inputs that were found change their meaning.
namespace attendant {

struct FuzzedMethod {
  const char* path;
  bool stream = false;
  bool answers_each = true;  // a stream, each message, good or bad; else one that fails ends it
  const char* model = "";    // the metadata x-model
};

inline constexpr FuzzedMethod kFuzzedEncoder[] = {
    {"/attendant.v1.Encoder/Encode"},
    {"/attendant.v1.Encoder/EncodeStream", true},
    {"/attendant.v1.Encoder/ListModels"},
    {"/grpc.health.v1.Health/Check"},
};

inline constexpr FuzzedMethod kFuzzedAttention[] = {
    {"/attendant.v1.Attention/Attend"},
    {"/attendant.v1.Attention/AttendStream", true},
    {"/attendant.v1.Attention/ListAttention"},
};

#define ATTENDANT_KSERVE(name) "/inference.GRPCInferenceService/" name
inline constexpr FuzzedMethod kFuzzedKServe[] = {
    {ATTENDANT_KSERVE("ModelInfer")},
    {ATTENDANT_KSERVE("ModelStreamInfer"), true},
    {ATTENDANT_KSERVE("ServerLive")},
    {ATTENDANT_KSERVE("ServerReady")},
    {ATTENDANT_KSERVE("ServerMetadata")},
    {ATTENDANT_KSERVE("ModelReady")},
    {ATTENDANT_KSERVE("ModelMetadata")},
    {ATTENDANT_KSERVE("ModelConfig")},
    {ATTENDANT_KSERVE("ModelStatistics")},
    {ATTENDANT_KSERVE("RepositoryIndex")},
    {ATTENDANT_KSERVE("RepositoryModelLoad")},
    {ATTENDANT_KSERVE("RepositoryModelUnload")},
    {ATTENDANT_KSERVE("SystemSharedMemoryStatus")},
    {ATTENDANT_KSERVE("SystemSharedMemoryRegister")},
    {ATTENDANT_KSERVE("SystemSharedMemoryUnregister")},
    {ATTENDANT_KSERVE("CudaSharedMemoryStatus")},
    {ATTENDANT_KSERVE("CudaSharedMemoryRegister")},
    {ATTENDANT_KSERVE("CudaSharedMemoryUnregister")},
    {ATTENDANT_KSERVE("TraceSetting")},
    {ATTENDANT_KSERVE("LogSettings")},
};
#undef ATTENDANT_KSERVE

inline constexpr FuzzedMethod kFuzzedTei[] = {
    {"/tei.v1.Info/Info"},
    {"/tei.v1.Embed/Embed"},
    {"/tei.v1.Embed/EmbedStream", true, false},
    {"/tei.v1.Embed/EmbedSparse"},
    {"/tei.v1.Embed/EmbedSparseStream", true, false},
    {"/tei.v1.Embed/EmbedAll"},
    {"/tei.v1.Embed/EmbedAllStream", true, false},
    {"/tei.v1.Predict/Predict"},
    {"/tei.v1.Predict/PredictPair"},
    {"/tei.v1.Predict/PredictStream", true, false},
    {"/tei.v1.Predict/PredictPairStream", true, false},
    {"/tei.v1.Rerank/Rerank"},
    {"/tei.v1.Rerank/RerankStream", true, false},
    {"/tei.v1.Tokenize/Tokenize", false, true, "tiny"},
    {"/tei.v1.Tokenize/TokenizeStream", true, false, "tiny"},
    {"/tei.v1.Tokenize/Decode", false, true, "tiny"},
    {"/tei.v1.Tokenize/DecodeStream", true, false, "tiny"},
};

}  // namespace attendant
