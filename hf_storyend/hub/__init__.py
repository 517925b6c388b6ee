"""Models on the Hugging Face Hub: pushing them, their cards, and a check of the code that travels with them."""

from typing import TYPE_CHECKING

from ..lazy import lazy_exports

if TYPE_CHECKING:
    from .card import render_card, render_card_of
    from .collection import CollectionPlan, CollectionPush, plan_collection, push_collection
    from .errors import HubError
    from .options import CardOptions, CheckCodeOptions, PushOptions
    from .push import Push, PushPlan, plan_push, push
    from .verify_code import CodeCheck, check_code

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "CardOptions": ".options",
        "CheckCodeOptions": ".options",
        "CodeCheck": ".verify_code",
        "CollectionPlan": ".collection",
        "CollectionPush": ".collection",
        "HubError": ".errors",
        "Push": ".push",
        "PushOptions": ".options",
        "PushPlan": ".push",
        "check_code": ".verify_code",
        "plan_collection": ".collection",
        "plan_push": ".push",
        "push": ".push",
        "push_collection": ".collection",
        "render_card": ".card",
        "render_card_of": ".card",
    },
)
