# SPDX-License-Identifier: Apache-2.0
"""attendant/v1/attention.proto"""

from attendant.v1.messages import load

globals().update(load("attendant/v1/attention.proto"))
