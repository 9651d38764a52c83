"""Which commit the tests were run on."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from pytest_ragbench.clean import one_line
from pytest_ragbench.model.report import GitRecord

# GitHub (of a pull request, else of a push), GitLab, CircleCI, Buildkite, Bitbucket.
_BRANCHES = (
    "GITHUB_HEAD_REF",
    "GITHUB_REF_NAME",
    "CI_COMMIT_REF_NAME",
    "CIRCLE_BRANCH",
    "BUILDKITE_BRANCH",
    "BITBUCKET_BRANCH",
)


def revision(directory: Path) -> GitRecord | None:
    """``run.git`` of the JSON report: commit, branch, dirty, directory. None where there is no git to ask.

    ``directory`` is told from the top of the working tree, ``""`` at the top itself; ``branch`` is on a
    detached head, as most CI services check out, what the service says, else None; ``dirty`` where a
    tracked file was changed.
    """
    commit = _git(directory, "rev-parse", "HEAD")
    prefix = _git(directory, "rev-parse", "--show-prefix")
    if commit is None or prefix is None:
        return None
    branch = _git(directory, "symbolic-ref", "--quiet", "--short", "HEAD")
    branch = branch or next((os.environ[name] for name in _BRANCHES if os.environ.get(name)), None)
    changed = _git(directory, "status", "--porcelain", "--untracked-files=no")
    return GitRecord(
        commit=commit,
        branch=one_line(branch, 200) if branch else None,
        dirty=bool(changed),
        directory=prefix.rstrip("/"),
    )


def _git(directory: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(  # noqa: S603 - fixed arguments
            ["git", "--no-optional-locks", *arguments],  # noqa: S607 - the user's git
            cwd=directory,
            capture_output=True,
            timeout=10,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode("utf-8", "replace").strip() if done.returncode == 0 else None
