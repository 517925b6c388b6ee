"""Commands that share a model: `storyend card`, `storyend push`, `storyend check-code`, `storyend export`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..export.options import ExportOptions
from ..hub.options import CardOptions, CheckCodeOptions, PushOptions
from .printing import print_json, print_line, print_text

if TYPE_CHECKING:
    from ..hub.push import PushPlan
    from ..hub.verify_code import CodeCheck


def card(options: CardOptions) -> None:
    """
    Make a model card from what training and `storyend evaluate --output_dir MODEL` measured.

    Example: `storyend card my_model --output_file my_model/README.md`
    """
    from ..files import atomic_write
    from ..hub.card import card_of, render_card_of
    from ..pretrained import default_model

    # The files that the card of the package's model was made from are not part of the package.
    text = card_of(default_model()) if options.model is None else render_card_of(options.model)
    if options.output_file is None:
        print_text(text)
    else:
        atomic_write(Path(options.output_file), text)


def push(options: PushOptions) -> None:
    """
    Push a model to the Hugging Face Hub: code, weights, tokenizer, knowledge and card in one commit.

    The token is that of `hf auth login` or HF_TOKEN. If the repository has the same files, nothing happens. With
    `--collection OWNER` it pushes all models of a comparison, and collects them on one page.

    Example: `storyend push my_model --repo_id me/ie-msa-ca --private --dry_run`
    """
    if options.collection is not None:
        _push_collection(options, options.collection)
        return
    from .. import hub

    arguments = asdict(options)
    del arguments["dry_run"], arguments["json"], arguments["collection"]
    if options.dry_run:
        plan, address = hub.plan_push(**arguments), None
        verdict = "A dry run: nothing was pushed."
        if not plan.is_compared:
            verdict = "A dry run out of reach of the Hub: nothing was compared, and nothing was pushed."
    else:
        done = hub.push(**arguments)
        plan, address = done.plan, done.commit_url
        verdict = address or "Nothing to push: the repository has the same files."
    if options.json:
        print_json({**_describe_plan(plan), "commit_url": address})
        return
    _print_plan(plan)
    print_line(verdict)


def _push_collection(options: PushOptions, owner: str) -> None:
    from .. import hub

    arguments: dict[str, Any] = {"private": options.private, "allow_changed_code": options.allow_changed_code}
    if options.dry_run:
        planned = hub.plan_collection(options.model, owner, **arguments)
        plans, address, missing = planned.plans, planned.address, planned.missing
        verdict = f"A dry run: nothing was pushed. The collection would get {len(missing)} of these models"
        verdict += "." if address is None else f": {address}"
        if not all(plan.is_compared for plan in plans):
            verdict = "A dry run out of reach of the Hub: nothing was compared, and nothing was pushed."
    else:
        done = hub.push_collection(options.model, owner, **arguments)
        plans, address = [one.plan for one in done.pushes], done.address
        verdict = done.address
    if options.json:
        print_json({"collection_url": address, "models": [_describe_plan(plan) for plan in plans]})
        return
    for plan in plans:
        _print_plan(plan)
    print_line(verdict)


def check_code(options: CheckCodeOptions) -> None:
    """
    Check that all that transformers could run of a model is what the installed package writes: code byte for byte.

    Files in sub-folders and settings that name code, kernels or other repositories are part of it. A model on the Hub
    is checked at one commit, which is printed. The exit code is 0 if it is and 1 if it is not.

    Example: `storyend check-code me/ie-msa-ca`
    """
    from ..pretrained import find_model

    name = find_model(options.model)
    from .. import hub

    check = hub.check_code(name, options.revision)
    if options.model is None:
        # The package's own model carries no code: whoever has it has the package.
        check.missing = []
    if options.json:
        print_json({"is_identical": check.is_identical, **asdict(check)})
    else:
        _print_check(check, options.model)
    if not check.is_identical:
        raise typer.Exit(1)


def export(options: ExportOptions) -> None:
    """
    Export a model as ONNX graphs of its encoder and of one step of its decoder.

    `hf_storyend.export.OnnxGenerator` writes endings with them. It needs `pip install 'hf_storyend[onnx]'`.

    Example: `storyend export --format onnx --output_dir onnx_model`
    """
    from ..export import export as write

    for path in write(options):
        print_line(f"{path}: {path.stat().st_size / 1e6:.1f} MB")


def _describe_plan(plan: PushPlan) -> dict[str, Any]:
    return {
        "repo_id": plan.repo_id,
        "revision": plan.revision,
        "has_repo": plan.has_repo,
        "new": list(plan.new),
        "changed": list(plan.changed),
        "removed": plan.removed,
        "unchanged": plan.unchanged,
        "is_compared": plan.is_compared,
    }


def _print_plan(plan: PushPlan) -> None:
    print_line(f"{plan.repo_id} at {plan.revision}{' (new)' if plan.is_compared and not plan.has_repo else ''}")
    for word, names in (("new", plan.new), ("changed", plan.changed), ("removed", plan.removed)):
        for name in names:
            print_line(f"  {word:8} {name}")
    if plan.unchanged:
        print_line(f"  {len(plan.unchanged)} files are unchanged")


def _print_check(check: CodeCheck, model: str | None) -> None:
    from .. import __version__

    versions = ", ".join(f"{name} {number}" for name, number in check.library_versions.items()) or "not recorded"
    print_line(f"library versions: {versions}")
    if check.revision is not None:
        print_line(f"revision: {check.revision}")
    for word, names in (("different", check.different), ("missing", check.missing), ("foreign", check.foreign)):
        for name in names:
            print_line(f"  {word}: {name}")
    if model is None and check.is_identical:
        print_line(f"The model that comes with hf_storyend {__version__} carries no code: the package's own is used.")
        return
    print_line(f"  identical: {len(check.identical)} code files; {', '.join(check.settings) or 'no settings'}")
    verdict = "identical with" if check.is_identical else "not that of"
    print_line(f"The code of {model or 'the default model'} is {verdict} hf_storyend {__version__}.")
    if check.revision is not None and check.is_identical:
        print_line(
            "That holds for this revision only: give it to `from_pretrained` as `revision` and `code_revision`."
        )
