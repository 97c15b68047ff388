"""A JSON service that describes itself: FastAPI with the OpenAPI document it generates.

Prints its port. Every request needs the bearer token of the variable SERVICE_TOKEN, the one for the document too.
"""

import os
import socket
from enum import Enum
from typing import Annotated

import uvicorn
from fastapi import Depends, FastAPI, HTTPException, Query, Response
from fastapi.openapi.utils import get_openapi
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel

bearer = HTTPBearer()


def allowed(given: Annotated[HTTPAuthorizationCredentials, Depends(bearer)]):
    if given.credentials != os.environ["SERVICE_TOKEN"]:
        raise HTTPException(401, "wrong token", {"WWW-Authenticate": 'Bearer realm="items"'})


app = FastAPI(title="Items", version="3", openapi_url=None, dependencies=[Depends(allowed)])


class Kind(str, Enum):
    tool = "tool"
    part = "part"


class Item(BaseModel):
    id: int
    kind: Kind
    tags: list[str] = []
    parts: list["Item"] = []
    note: str | None = None


ITEMS = {
    number: Item(id=number, kind=Kind.tool if number % 2 else Kind.part, tags=["even", "odd"][number % 2 :][:1])
    for number in range(1, 11)
}


@app.get("/items")
def list_items(
    kind: Kind | None = None, tag: Annotated[list[str], Query()] = [], limit: Annotated[int, Query(ge=1)] = 100
) -> list[Item]:
    wanted = [item for item in ITEMS.values() if kind in (None, item.kind)]
    return [item for item in wanted if not tag or set(tag) & set(item.tags)][:limit]


@app.get("/items/{item_id}")
def read_item(item_id: int) -> Item:
    if item_id not in ITEMS:
        raise HTTPException(404, f"no item {item_id}")
    return ITEMS[item_id]


@app.get("/nothing", status_code=204)
def nothing() -> None:
    return None


@app.post("/items", status_code=201)
def add_item(item: Item) -> Item:
    ITEMS[item.id] = item
    return item


@app.get("/openapi.json", include_in_schema=False)
def document() -> dict:
    return get_openapi(title=app.title, version=app.version, routes=app.routes)


if __name__ == "__main__":
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    # A client that knows the port may connect before the service is ready.
    listener.listen()
    print(listener.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])
