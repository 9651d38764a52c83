"""Objects of RAG libraries, each against the real library where it is installed (extra ``stacks``)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pytest_ragbench import RagSample, UsageError, building
from pytest_ragbench.engine import Engine
from pytest_ragbench.model.samples import Question
from pytest_ragbench.settings import Settings

TEXTS = {"d1": "Delivery takes two days.", "d2": "A receipt is needed to return a product."}


@pytest.fixture
def engine() -> Iterator[Engine]:
    made = building.engine(Settings(store="off"), run_id="test")
    yield made
    made.close()


def ask(value: object, engine: Engine, question: str = "What is needed?") -> RagSample:
    retriever = building.retriever(value, engine, Settings())
    return engine.wait(retriever.ask(Question(id="q", question=question)))


@pytest.mark.stacks
class TestLangChain:
    @pytest.fixture
    def retriever(self) -> Any:
        core = pytest.importorskip("langchain_core")
        assert core
        from langchain_core.documents import Document
        from langchain_core.retrievers import BaseRetriever

        class Fixed(BaseRetriever):  # type: ignore[misc, unused-ignore]
            def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
                return [
                    Document(page_content=text, id=name, metadata={"score": 0.5})
                    for name, text in TEXTS.items()
                ]

        return Fixed()

    def test_a_retriever_gives_contexts(self, retriever: Any, engine: Engine) -> None:
        sample = ask(retriever, engine)
        assert sample.contexts == tuple(TEXTS.values())
        assert (sample.context_ids, sample.context_scores) == (("d1", "d2"), (0.5, 0.5))

    def test_a_chain_of_a_text(self, retriever: Any, engine: Engine) -> None:
        from langchain_core.language_models import FakeListChatModel
        from langchain_core.output_parsers import StrOutputParser
        from langchain_core.prompts import ChatPromptTemplate
        from langchain_core.runnables import RunnablePassthrough

        chain = (
            {"context": retriever, "question": RunnablePassthrough()}
            | ChatPromptTemplate.from_template("{context} {question}")
            | FakeListChatModel(responses=["A receipt."])
            | StrOutputParser()
        )
        assert ask(chain, engine).answer == "A receipt."

    def test_a_chain_with_its_sources(self, retriever: Any, engine: Engine) -> None:
        """As create_retrieval_chain makes them: input in, answer and context out."""
        from langchain_core.language_models import FakeListChatModel
        from langchain_core.prompts import ChatPromptTemplate
        from langchain_core.runnables import RunnablePassthrough

        answer = ChatPromptTemplate.from_template("{context} {input}") | FakeListChatModel(
            responses=["A receipt."]
        )
        chain = RunnablePassthrough.assign(context=(lambda x: x["input"]) | retriever).assign(answer=answer)
        bound = chain.with_types(input_type=dict[str, str])
        asked = ask(lambda question: bound.invoke({"input": question}) | {"answer": "A receipt."}, engine)
        assert asked.answer == "A receipt."

    def test_a_prompt_names_its_input(self, engine: Engine) -> None:
        pytest.importorskip("langchain_core")
        from langchain_core.language_models import FakeListChatModel
        from langchain_core.prompts import ChatPromptTemplate

        chain = ChatPromptTemplate.from_template("Answer: {question}") | FakeListChatModel(
            responses=["A receipt."]
        )
        assert ask(chain, engine).answer == "A receipt."


@pytest.mark.stacks
class TestLangGraph:
    def test_a_graph_with_a_state_of_its_own(self, engine: Engine) -> None:
        """Question in; documents and answer among what comes out. A node is async, as in an app."""
        graphs = pytest.importorskip("langgraph.graph")
        from langchain_core.documents import Document

        state = dict[str, Any]

        async def retrieve(given: state) -> state:
            assert given["question"] == "What is needed?"
            return {"context": [Document(page_content=text, id=name) for name, text in TEXTS.items()]}

        def generate(given: state) -> state:
            return {"answer": f"{len(given['context'])} documents"}

        built = graphs.StateGraph(_state("question", "context", "answer"))
        built.add_node("retrieve", retrieve)
        built.add_node("generate", generate)
        built.add_edge(graphs.START, "retrieve")
        built.add_edge("retrieve", "generate")
        built.add_edge("generate", graphs.END)
        sample = ask(built.compile(), engine)
        assert sample.answer == "2 documents"
        assert (sample.contexts, sample.context_ids) == (tuple(TEXTS.values()), ("d1", "d2"))

    def test_a_graph_of_messages(self, engine: Engine) -> None:
        """The last message is the answer."""
        graphs = pytest.importorskip("langgraph.graph")
        from langchain_core.language_models import FakeListChatModel

        model = FakeListChatModel(responses=["A receipt."])
        built = graphs.StateGraph(graphs.MessagesState)
        built.add_node("model", lambda given: {"messages": [model.invoke(given["messages"])]})
        built.add_edge(graphs.START, "model")
        built.add_edge("model", graphs.END)
        assert ask(built.compile(), engine).answer == "A receipt."


def _state(*names: str) -> Any:
    from typing import TypedDict

    return TypedDict("State", dict.fromkeys(names, Any), total=False)  # type: ignore[operator, unused-ignore]


@pytest.mark.stacks
class TestLlamaIndex:
    @pytest.fixture
    def index(self) -> Any:
        core = pytest.importorskip("llama_index.core")
        from llama_index.core.schema import TextNode

        nodes = [TextNode(text=text, id_=name) for name, text in TEXTS.items()]
        return core.SummaryIndex(nodes)

    def test_a_query_engine(self, index: Any, engine: Engine) -> None:
        from llama_index.core.llms import MockLLM

        sample = ask(index.as_query_engine(llm=MockLLM(max_tokens=5)), engine)
        assert sample.answer
        assert sample.contexts == tuple(TEXTS.values())
        assert sample.context_ids == ("d1", "d2")

    def test_a_chat_engine(self, index: Any, engine: Engine) -> None:
        from llama_index.core.llms import MockLLM

        sample = ask(index.as_chat_engine(chat_mode="context", llm=MockLLM(max_tokens=5)), engine)
        assert sample.answer
        assert sample.contexts == tuple(TEXTS.values())

    def test_a_retriever(self, index: Any, engine: Engine) -> None:
        sample = ask(index.as_retriever(), engine)
        assert sample.contexts == tuple(TEXTS.values())


@pytest.mark.stacks
def test_a_haystack_pipeline(engine: Engine) -> None:
    haystack = pytest.importorskip("haystack")
    from haystack.components.builders import AnswerBuilder, PromptBuilder
    from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    @haystack.component
    class Fixed:
        @haystack.component.output_types(replies=list[str])  # type: ignore[untyped-decorator, unused-ignore]
        def run(self, prompt: str) -> dict[str, list[str]]:
            return {"replies": ["A receipt."]}

    store = InMemoryDocumentStore()
    store.write_documents([haystack.Document(content=text, id=name) for name, text in TEXTS.items()])
    pipeline = haystack.Pipeline()
    pipeline.add_component("retriever", InMemoryBM25Retriever(store))
    pipeline.add_component("prompt", PromptBuilder("{{documents}} {{question}}", required_variables="*"))
    pipeline.add_component("llm", Fixed())
    pipeline.connect("retriever", "prompt.documents")
    pipeline.connect("prompt", "llm")
    sample = ask(pipeline, engine, "receipt product")
    assert sample.answer == "A receipt."
    assert sample.contexts is not None
    assert TEXTS["d2"] in sample.contexts
    assert sample.context_ids is not None
    assert sample.context_scores

    pipeline.add_component("answers", AnswerBuilder())
    pipeline.connect("llm.replies", "answers.replies")
    pipeline.connect("retriever", "answers.documents")
    assert ask(pipeline, engine, "receipt").answer == "A receipt."


@pytest.mark.stacks
def test_a_haystack_pipeline_without_a_question(engine: Engine) -> None:
    haystack = pytest.importorskip("haystack")
    with pytest.raises(UsageError, match="no input for a question"):
        ask(haystack.Pipeline(), engine)
