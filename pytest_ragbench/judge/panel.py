"""Several judges in the place of one. What they say is put together metric by metric: scoring/voting.py."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar

from pydantic import BaseModel

from pytest_ragbench.judge.base import Answered, Judge, Task, all_are, identity_of
from pytest_ragbench.model.errors import UsageError

R = TypeVar("R", bound=BaseModel)

Aggregate = Literal["mean", "median", "min", "max", "majority", "consensus"]
Kind = Literal["panel", "confirm", "cascade", "dual"]


_JOINTS: Mapping[Kind, str] = {
    "panel": ", ",
    "dual": " and ",
    "confirm": ", confirmed by ",
    "cascade": ", near the threshold ",
}


@dataclass(frozen=True)
class Panel:
    """Judges that score each sample on their own.

    Parameters
    ----------
    members
        At least two.
    kind
        ``"panel"``: all are asked. ``"confirm"``: the second is asked where the first finds a failure, which
        counts only if both do. ``"cascade"``: the second is asked where the first's score lies within
        ``margin`` of the threshold, and then decides. ``"dual"``: in metrics with two examiners (answer accuracy with
        ``mode="confirm"`` or ``"swap_average"``) the second judge is the second examiner; elsewhere as ``"panel"``.
    aggregate
        How the scores of a panel become one. ``"median"``: of judges half of whom find the threshold missed, what
        the stricter of the middle two says. ``"majority"`` of verdicts (the median of that side); ``"consensus"``:
        the mean, if at least two have a score and all lie within ``tolerance`` of each other, else there is no score.
    """

    members: tuple[Judge, ...]
    kind: Kind = "panel"
    aggregate: Aggregate = "median"
    tolerance: float = 0.2
    margin: float = 0.1
    swap_roles: bool = False
    """Of ``"dual"``: once more with the judges in each other's role, and the mean of the two."""

    def __post_init__(self) -> None:
        names = [judge.name for judge in self.members]
        if len(names) < 2:
            raise UsageError(f"a panel needs at least two judges, got {names}")
        # Two votes of one judge would look like two opinions.
        if len(set(names)) < len(names):
            raise UsageError(f"a judge sits twice on the panel: {', '.join(names)}; repeats are 'votes'")

    @property
    def name(self) -> str:
        """All names."""
        return _JOINTS[self.kind].join(judge.name for judge in self.members)

    @property
    def identity(self) -> str:
        """All members, and how their scores become one."""
        how = {
            "panel": self.aggregate,
            "dual": "both ways" if self.swap_roles else "one way",
            "confirm": "",
            "cascade": f"within {self.margin:g}",
        }[self.kind]
        how += f" within {self.tolerance:g}" if how == "consensus" else ""
        members = _JOINTS[self.kind].join(identity_of(judge) for judge in self.members)
        return f"{members} ({how})" if how else members

    @property
    def tasks(self) -> Collection[str] | None:
        """What all of them can do."""
        # None stands for a judge that can do all.
        known = [set(judge.tasks) for judge in self.members if judge.tasks is not None]
        return set.intersection(*known) if known else None

    @property
    def probabilities(self) -> bool:
        """Whether all of them can be asked for a word with its probability."""
        return all_are(self.members, "probabilities")

    @property
    def shared(self) -> bool:
        """Whether the replies of all are kept by the engine, for all workers."""
        return all_are(self.members, "shared")

    async def ask(self, task: Task[R]) -> Answered[R]:
        """The first judge's reply, to a task that is not part of a score: scores ask all members (``scoring``)."""
        return await self.members[0].ask(task)
