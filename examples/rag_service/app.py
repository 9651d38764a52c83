"""The HTTP side: ``GET /llm/search-rag?questions=TEXT`` and ``GET /health``."""

from __future__ import annotations

import functools

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from rag_service.answering import Answerer, answerer_from_environment
from rag_service.documents import language_of, load_passages
from rag_service.hallucination import falsify, invent
from rag_service.retrieval import Library


@functools.cache
def _library() -> Library:
    """One index a process: an honest and a hallucinating service can share it."""
    return Library(load_passages())


def create_app(*, hallucinate: bool = False, instance: str = "") -> Starlette:
    """The service, with its index already built.

    Parameters
    ----------
    hallucinate
        Falsify every answer (the chunks stay true).
    instance
        Reported by ``/health``; tells a caller that it talks to the service it started.
    """
    library = _library()
    answer_from: Answerer = answerer_from_environment(library)
    library.search("warm up")  # the first pass through the encoder is slower than the others

    # Plain functions: Starlette runs them in threads, so that one slow LLM reply blocks nobody.
    def search_rag(request: Request) -> Response:
        question = request.query_params.get("questions", "")
        if not question.strip():
            return JSONResponse({"error": "the parameter 'questions' is missing or blank"}, status_code=400)
        lang = language_of(question)
        hits = library.search(question)
        try:
            answer = answer_from(question, hits, lang)
        except Exception as error:  # whatever the LLM's client raises: the caller gets a status, not a page
            return JSONResponse({"error": f"no answer from the LLM: {error}"}, status_code=502)
        text = answer.text
        if hallucinate:
            text = invent(question, lang) if answer.abstained else falsify(text, question, lang)
        return JSONResponse(
            {
                "question": question,
                "answer": text,
                "abstained": answer.abstained and not hallucinate,
                "lang": lang,
                "model": answer.model,
                "chunks": [
                    {
                        "id": hit.passage.id,
                        "title": hit.passage.title,
                        "text": hit.passage.text,
                        "score": hit.score,
                    }
                    for hit in hits
                ],
            }
        )

    def health(_: Request) -> Response:
        return JSONResponse({"status": "ok", "instance": instance, "hallucinate": hallucinate})

    return Starlette(routes=[Route("/llm/search-rag", search_rag), Route("/health", health)])
