"""What several processes could write is written by one."""

from __future__ import annotations

import dataclasses
from collections import defaultdict

from rushlight.distributed.checkpoint.planner import SavePlan

__all__ = ["dedup_save_plans"]


def dedup_save_plans(all_plans: list[SavePlan], save_to_lowest_rank: bool = False):
    """Plans without repetitions; who has least to write writes what several have."""
    havers: dict = defaultdict(list)
    for number, plan in enumerate(all_plans):
        for item in plan.items:
            if number not in havers[item.index]:
                havers[item.index].append(number)
    sizes = {
        item.index: item.tensor_storage_size() or 1 for plan in all_plans for item in plan.items
    }
    load = [0] * len(all_plans)
    writer = {}
    for index, numbers in havers.items():
        if len(numbers) == 1:
            writer[index] = numbers[0]
            load[numbers[0]] += sizes[index]
    for index, numbers in havers.items():
        if len(numbers) > 1:
            chosen = numbers[0] if save_to_lowest_rank else min(numbers, key=load.__getitem__)
            writer[index] = chosen
            load[chosen] += sizes[index]
    return [
        dataclasses.replace(plan, items=[i for i in plan.items if writer[i.index] == number])
        for number, plan in enumerate(all_plans)
    ]
