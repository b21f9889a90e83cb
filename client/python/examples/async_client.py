# SPDX-License-Identifier: Apache-2.0
"""Several calls at the same time with asyncio: async_client.py [SERVER [MODEL]]"""

import asyncio
import sys

from attendant import AsyncClient, AttendantError


async def main(server: str = "127.0.0.1:8001", model: str = "") -> None:
    async with AsyncClient(server, model=model or None, timeout=10) as client:
        rows = await asyncio.gather(*(client.embed(text) for text in ("one", "two", "three")))
        print("embeddings of", [len(row) for row in rows], "values")
        try:
            await client.embed("four", model="nobody")
        except AttendantError as error:
            print(f"{error.code.name}: {error} (request {error.request_id})")

asyncio.run(main(*sys.argv[1:]))
