"""Objects of RAG libraries as functions of the question. None of the libraries is imported here.

What an object is follows from the names of its classes, so that any release that keeps its interface works.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pytest_ragbench.model.errors import UsageError

Function = Callable[[str], Any]


def adapted(value: Any) -> tuple[Function, str] | None:
    """The object as a function of the question, and what it is called; None for any other object.

    Understood are LangChain runnables (retrievers, chains, graphs), LlamaIndex query engines, chat engines and
    retrievers, and Haystack pipelines.
    """
    for module, adapt in (("langchain", _langchain), ("langgraph", _langchain), ("llama_index", _llamaindex),
                          ("haystack", _haystack)):  # fmt: skip
        if _comes_from(value, module):
            function = adapt(value)
            if function is not None:
                return function, f"{type(value).__module__.partition('.')[0]} {type(value).__name__}"
    return None


def _comes_from(value: Any, package: str) -> bool:
    """Whether its class, or one that it derives from, is of the package (``langchain_core`` for ``langchain``)."""
    # By name, since the library need not be installed where its objects are not used.
    roots = {cls.__module__.partition(".")[0] for cls in type(value).__mro__}
    return any(root == package or root.startswith(f"{package}_") for root in roots)


# LangChain


def _langchain(runnable: Any) -> Function | None:
    if not hasattr(runnable, "ainvoke"):
        return None
    # A retriever takes the bare question, whatever its schema says.
    retrieves = any(cls.__name__ == "BaseRetriever" for cls in type(runnable).__mro__)
    given = None if retrieves else _input_of(runnable)

    async def ask(question: str) -> Any:
        return _reply(await runnable.ainvoke(given(question) if given else question))

    return ask


def _input_of(runnable: Any) -> Callable[[str], Any] | None:
    """What the runnable takes: a string, or a mapping with the question under the one name that it asks for."""
    try:
        schema = runnable.get_input_jsonschema()
    # Schemas of user-made parts may raise anything; pydantic's refuse typing.TypedDict before Python 3.12.
    except Exception:
        schema = _state_of(runnable)
    names = list(schema.get("properties") or {}) if schema.get("type") == "object" else []
    # Graphs of LangGraph mostly keep their state as messages.
    if "messages" in names:
        return lambda question: {"messages": [("user", question)]}
    known = [name for name in _QUESTIONS if name in names]
    needed = [name for name in schema.get("required") or names if name not in ("chat_history",)]
    name = known[0] if known else (needed[0] if len(needed) == 1 else None)
    return None if name is None else lambda question: {name: question}


def _state_of(graph: Any) -> dict[str, Any]:
    """The schema of a LangGraph's input as far as names go, from the class that describes its state."""
    builder = getattr(graph, "builder", None)
    for name in ("input_schema", "state_schema", "schema"):
        names = getattr(getattr(builder, name, None), "__annotations__", None)
        if names:
            return {"type": "object", "properties": dict.fromkeys(names)}
    return {}


_QUESTIONS = ("question", "input", "query", "user_input", "user_question")


def _reply(found: Any) -> Any:
    """What a runnable returned, as JSON would have it."""
    if hasattr(found, "page_content"):
        return _document(found)
    if isinstance(found, Sequence) and not isinstance(found, str):
        parts = [_reply(part) for part in found]
        documents = all(isinstance(part, Mapping) and "text" in part for part in parts)
        return {"answer": "", "contexts": parts} if documents else parts
    if isinstance(found, Mapping):
        return {str(key): _inner(value) for key, value in found.items()}
    if hasattr(found, "content") and hasattr(found, "type"):  # a message
        return _message(found)["content"]
    return found


def _inner(value: Any) -> Any:
    if hasattr(value, "page_content"):
        return _document(value)
    if hasattr(value, "content") and hasattr(value, "type"):
        return _message(value)
    if isinstance(value, Mapping):
        return {str(key): _inner(each) for key, each in value.items()}
    return [_inner(each) for each in value] if isinstance(value, (list, tuple)) else value


def _message(message: Any) -> dict[str, Any]:
    content = message.content
    if not isinstance(content, str):  # parts of several kinds
        content = "".join(part if isinstance(part, str) else str(part.get("text", "")) for part in content)
    return {"type": message.type, "content": content}


def _document(document: Any) -> dict[str, Any]:
    metadata = dict(document.metadata or {})
    found = {"text": document.page_content, "metadata": metadata}
    id = getattr(document, "id", None) or metadata.get("id") or metadata.get("source")
    if id is not None:
        found["id"] = str(id)
    score = metadata.get("score", metadata.get("relevance_score"))
    return {**found, "score": score} if isinstance(score, (int, float)) else found


# LlamaIndex


def _llamaindex(value: Any) -> Function | None:
    # Query engine, chat engine, retriever: whichever the object is.
    for method in ("aquery", "achat", "aretrieve"):
        ask = getattr(value, method, None)
        if callable(ask):
            break
    else:
        return None

    async def asked(question: str) -> Any:
        found = await ask(question)
        if isinstance(found, list):
            return {"answer": "", "contexts": [_node(each) for each in found]}
        text = getattr(found, "response", None)
        nodes = getattr(found, "source_nodes", None) or []
        return {
            "answer": text if isinstance(text, str) else str(found),
            "contexts": [_node(each) for each in nodes],
        }

    return asked


def _node(found: Any) -> dict[str, Any]:
    node = getattr(found, "node", found)
    chunk = {"text": node.get_content(), "id": node.node_id, "metadata": dict(node.metadata or {})}
    score = getattr(found, "score", None)
    return chunk if score is None else {**chunk, "score": float(score)}


# Haystack


def _haystack(pipeline: Any) -> Function | None:
    if not hasattr(pipeline, "inputs") or not hasattr(pipeline, "run"):
        return None
    parts = _haystack_inputs(pipeline)
    # With everything a part has made: documents that another part took are not among the pipeline's outputs.
    every = {name for name, _ in pipeline.walk()}

    def given(question: str) -> dict[str, dict[str, str]]:
        inputs: dict[str, dict[str, str]] = {}
        for part, name in parts:
            inputs.setdefault(part, {})[name] = question
        return inputs

    def ask(question: str) -> Any:
        return _haystack_reply(pipeline.run(given(question), include_outputs_from=every), pipeline.outputs())

    async def asked(question: str) -> Any:
        found = await pipeline.run_async(given(question), include_outputs_from=every)
        return _haystack_reply(found, pipeline.outputs())

    return asked if inspect.iscoroutinefunction(getattr(pipeline, "run_async", None)) else ask


def _haystack_inputs(pipeline: Any) -> list[tuple[str, str]]:
    """Every input of the pipeline that takes a question: each component's ``query``, ``text``, ``prompt`` ..."""
    found = [
        (part, name)
        for part, sockets in pipeline.inputs().items()
        for name, socket in sockets.items()
        if (name in ("query", "question", "text", "user_input") or socket.get("is_mandatory"))
        and socket.get("type") in (str, None, Any, "str", "Any")
    ]
    if not found:
        listed = ", ".join(
            f"{part}.{name}" for part, sockets in pipeline.inputs().items() for name in sockets
        )
        raise UsageError(
            f"the Haystack pipeline has no input for a question; its inputs: {listed or 'none'}. "
            "Wrap it in a function of the question"
        )
    return found


def _haystack_reply(found: Mapping[str, Mapping[str, Any]], outputs: Mapping[str, Any]) -> Any:
    """The answer from where the pipeline ends, the documents from the last part that returned some."""
    documents: list[Any] | None = None
    answer: str | None = None
    for part, made in found.items():
        for value in made.values():
            if not isinstance(value, list) or not value:
                continue
            if all(
                hasattr(each, "content") and hasattr(each, "meta") and hasattr(each, "blob") for each in value
            ):
                documents = value
            elif part in outputs:
                first = value[0]
                said = getattr(first, "data", None) or getattr(first, "text", None) or first
                answer = said if isinstance(said, str) else answer
                own = getattr(first, "documents", None)
                documents = own if own else documents
    contexts = [
        {"text": each.content or "", "id": each.id, **({} if each.score is None else {"score": each.score})}
        for each in documents or []
    ]
    return {"answer": answer or "", **({} if documents is None else {"contexts": contexts})}
