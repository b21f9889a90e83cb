# SPDX-License-Identifier: Apache-2.0
"""The messages of attendant.v1, for what the client does not offer: encoder_pb2 and attention_pb2."""
