"""What a judge can be asked: tasks, each with the type of its reply."""

from __future__ import annotations

from pytest_ragbench.judge.tasks.answers import CheckConsistency, CompareClaims, GradeEndToEnd, TurnVerdict
from pytest_ragbench.judge.tasks.cases import (
    CaseVerdict,
    CheckCase,
    Kind,
    Rephrase,
    Rephrased,
    WriteCases,
    WrittenCase,
    WrittenCases,
)
from pytest_ragbench.judge.tasks.claims import Claims, Fineness, SplitClaims, VerifyClaims
from pytest_ragbench.judge.tasks.contexts import (
    Entities,
    ExtractEntities,
    ExtractSentences,
    FindEntities,
    JudgeChunks,
    Sentences,
)
from pytest_ragbench.judge.tasks.grades import (
    AbstentionReply,
    CheckAbstention,
    GradeFaithfulness,
    GradeRelevance,
    GradeReply,
    GradeSearchRag,
    SearchRagReply,
)
from pytest_ragbench.judge.tasks.numbered import NumberedTask, Reply, SupportVerdict, Verdict, Verdicts
from pytest_ragbench.judge.tasks.one_word import ASKED, OneWord, YesChance, ask_in_a_word, in_a_word
from pytest_ragbench.judge.tasks.questions import WriteQuestions, WrittenQuestion, WrittenQuestions
from pytest_ragbench.judge.tasks.ratings import (
    AspectReply,
    CheckAspect,
    ConfirmAccuracy,
    RateAccuracy,
    RateContextRelevance,
    RateGroundedness,
    RateRubric,
    RatingReply,
)

__all__ = [
    "ASKED",
    "AbstentionReply",
    "AspectReply",
    "CaseVerdict",
    "CheckAbstention",
    "CheckAspect",
    "CheckCase",
    "CheckConsistency",
    "Claims",
    "CompareClaims",
    "ConfirmAccuracy",
    "Entities",
    "ExtractEntities",
    "ExtractSentences",
    "FindEntities",
    "Fineness",
    "GradeEndToEnd",
    "GradeFaithfulness",
    "GradeRelevance",
    "GradeReply",
    "GradeSearchRag",
    "JudgeChunks",
    "Kind",
    "NumberedTask",
    "OneWord",
    "RateAccuracy",
    "RateContextRelevance",
    "RateGroundedness",
    "RateRubric",
    "RatingReply",
    "Rephrase",
    "Rephrased",
    "Reply",
    "SearchRagReply",
    "Sentences",
    "SplitClaims",
    "SupportVerdict",
    "TurnVerdict",
    "Verdict",
    "Verdicts",
    "VerifyClaims",
    "WriteCases",
    "WriteQuestions",
    "WrittenCase",
    "WrittenCases",
    "WrittenQuestion",
    "WrittenQuestions",
    "YesChance",
    "ask_in_a_word",
    "in_a_word",
]
