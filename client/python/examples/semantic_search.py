# SPDX-License-Identifier: Apache-2.0
"""Finds the texts that are closest to a question: semantic_search.py [SERVER [MODEL]]"""

import sys

import numpy as np

from attendant import Client

DOCUMENTS = ["The Eiffel Tower has 330 metres.", "Bread is made of flour and water.", "Stocks fell on Monday.",
             "Trains to Lyon leave every hour."]
QUESTION = "How high is the tower in Paris?"

server, model = [*sys.argv[1:], *["127.0.0.1:8001", ""][len(sys.argv) - 1:]]
with Client(server, model=model or None) as client:
    similarities = client.embed(DOCUMENTS, normalize=True) @ client.embed(QUESTION, normalize=True)
for i in np.argsort(-similarities):
    print(f"{similarities[i]:.3f}  {DOCUMENTS[i]}")
