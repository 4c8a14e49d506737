"""Finds calls in loops for which there is a faster way to the same result.

Each of them has an entry in `costly_options.toml`, which has the advice. Here, the stack shows the
call, and the program's source shows that the faster way gives the same result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.source.purity import Purity
from teho.source.slow_calls.added_tokens import find_added_tokens
from teho.source.slow_calls.alternatives import find_alternatives
from teho.source.slow_calls.attached_fakes import find_attached_fake
from teho.source.slow_calls.attention import find_unused_weights
from teho.source.slow_calls.attention_by_hand import find_attention_by_hand
from teho.source.slow_calls.averaged_weights import find_average_on_host
from teho.source.slow_calls.backward_again import find_backward_again
from teho.source.slow_calls.boosting import find_single_rounds
from teho.source.slow_calls.boosting_predicted import find_predicted_again
from teho.source.slow_calls.cells import find_unrolled_cell
from teho.source.slow_calls.chunks import find_large_chunks
from teho.source.slow_calls.columns import find_unused_columns
from teho.source.slow_calls.counted_singly import find_counted_singly
from teho.source.slow_calls.diagonal_jacobians import find_diagonal_jacobian
from teho.source.slow_calls.eager_functions import find_eager_function
from teho.source.slow_calls.events import find_events
from teho.source.slow_calls.factors import find_factorised_again
from teho.source.slow_calls.few_statements import find_few_statements
from teho.source.slow_calls.filled_arrays import find_filled_array
from teho.source.slow_calls.float_arguments import find_float_argument
from teho.source.slow_calls.forests import find_forest_of_sizes
from teho.source.slow_calls.forward_gradients import find_forward_gradient
from teho.source.slow_calls.frequent_evaluations import find_frequent_evaluation
from teho.source.slow_calls.frozen_models import find_frozen_model
from teho.source.slow_calls.full_vectors import find_full_vectors
from teho.source.slow_calls.groups import find_empty_groups
from teho.source.slow_calls.hashes import find_colliding_hash
from teho.source.slow_calls.host_batches import find_converted_before_copy
from teho.source.slow_calls.host_results import find_computed_on_host
from teho.source.slow_calls.http_connections import find_connection_for_each
from teho.source.slow_calls.images import find_large_image
from teho.source.slow_calls.integrals import find_integral
from teho.source.slow_calls.jacobians import find_dense_jacobian
from teho.source.slow_calls.late_reductions import find_late_reduction
from teho.source.slow_calls.loaded_again import find_loaded_again
from teho.source.slow_calls.locks import find_held_lock
from teho.source.slow_calls.mapped_again import find_mapped_again
from teho.source.slow_calls.mapped_conditions import find_mapped_condition
from teho.source.slow_calls.masks import find_masks
from teho.source.slow_calls.models import find_model_made_again
from teho.source.slow_calls.odd_sizes import find_odd_sizes
from teho.source.slow_calls.overwritten_records import find_overwritten_record
from teho.source.slow_calls.padded_batches import find_padded_batches
from teho.source.slow_calls.paging import find_paging
from teho.source.slow_calls.pair_fills import find_pair_fill
from teho.source.slow_calls.pairs import find_compared_pairs
from teho.source.slow_calls.pauses import find_pause
from teho.source.slow_calls.pictures import find_picture_decoded_again
from teho.source.slow_calls.points import find_single_points
from teho.source.slow_calls.predictions import find_single_predictions
from teho.source.slow_calls.prefix_scans import find_prefix_scan
from teho.source.slow_calls.ranks import find_block_of_rank
from teho.source.slow_calls.records import find_records
from teho.source.slow_calls.refitted_steps import find_refitted_steps
from teho.source.slow_calls.requests import find_split_request
from teho.source.slow_calls.resized_embeddings import find_resized_embeddings
from teho.source.slow_calls.sample_gradients import find_sample_gradients
from teho.source.slow_calls.sample_loops import find_sample_loop
from teho.source.slow_calls.saved_views import find_saved_view
from teho.source.slow_calls.shares import find_prepared_by_all
from teho.source.slow_calls.single_elements import find_single_elements
from teho.source.slow_calls.singular_values import find_largest_singular_value
from teho.source.slow_calls.small_matrices import find_small_matrices
from teho.source.slow_calls.stacked_networks import find_networks_in_turn
from teho.source.slow_calls.static_arguments import find_static_argument
from teho.source.slow_calls.trainer_logits import find_collected_logits
from teho.source.slow_calls.unjitted import find_unjitted
from teho.source.slow_calls.unrolled_loops import find_unrolled_loop
from teho.source.slow_calls.unshared_data import find_unshared_data
from teho.source.slow_calls.weighted_draws import find_weighted_draw
from teho.source.slow_calls.weights_as_text import find_weights_as_text
from teho.source.slow_calls.whole_arrays import find_whole_arrays
from teho.source.slow_calls.whole_reads import find_whole_read
from teho.source.slow_calls.worker_shares import find_prepared_by_all_workers
from teho.source.stack import levels_of

__all__ = ["find_slow_calls"]


_IN_FILES = (find_padded_batches, find_unused_weights, find_odd_sizes, find_small_matrices)
"""Searches in whole files: the lines that take the time are others."""


def find_slow_calls(frames: Sequence[Frame], purity: Purity) -> Iterator[CostlyOption]:
    """Yield the calls on a stack for which there is a faster way.

    Args:
        frames: the stack, innermost frame first.
        purity: the program.
    """
    levels = levels_of(frames, purity.program)
    if not levels or any(level.is_measured for level in levels):
        return  # if the program measures the time, it may compare ways to do this
    found = (
        find_paging(levels),
        find_integral(levels, purity),
        find_single_rounds(levels, purity),
        find_large_image(levels, purity.program),
        find_single_points(levels, frames),
        find_masks(levels, frames, purity.program),
        find_compared_pairs(levels),
        find_single_predictions(levels, frames, purity),
        find_forest_of_sizes(levels, purity),
        find_unrolled_cell(levels, purity),
        find_model_made_again(levels, purity),
        find_prepared_by_all(levels, purity),
        find_block_of_rank(levels),
        find_dense_jacobian(levels, purity.program),
        find_large_chunks(levels, frames, purity),
        find_empty_groups(levels, frames),
        find_picture_decoded_again(levels, purity),
        find_colliding_hash(levels, purity),
        find_split_request(levels, purity),
        find_whole_arrays(levels, purity.program),
        find_added_tokens(levels, purity),
        find_backward_again(levels, purity),
        find_filled_array(levels, purity),
        find_unjitted(levels, frames, purity),
        find_float_argument(levels, purity),
        find_prepared_by_all_workers(levels, frames, purity),
        find_largest_singular_value(levels, purity),
        find_diagonal_jacobian(levels, purity),
        find_unused_columns(levels, frames),
        find_connection_for_each(levels, purity),
        find_alternatives(levels, frames, purity.program),
        find_factorised_again(levels, purity),
        find_refitted_steps(levels, purity.program),
        find_overwritten_record(levels, purity),
        find_counted_singly(levels, purity.program),
        find_events(levels, purity.program),
        find_held_lock(levels, frames, purity),
        find_static_argument(levels, purity.program),
        find_whole_read(levels, frames, purity),
        find_attention_by_hand(levels),
        find_sample_loop(levels, frames, purity),
        find_converted_before_copy(levels, frames, purity),
        find_computed_on_host(levels, purity),
        find_average_on_host(levels),
        find_collected_logits(levels, frames, purity),
        find_sample_gradients(levels),
        find_weighted_draw(levels),
        find_unshared_data(levels, purity.program),
        find_weights_as_text(levels),
        find_pair_fill(levels),
        find_full_vectors(levels, purity),
        find_prefix_scan(levels),
        find_records(levels),
        find_pause(levels, purity.program),
        find_late_reduction(levels),
        find_few_statements(levels),
        find_single_elements(levels, purity),
        find_predicted_again(levels, purity),
        find_unrolled_loop(levels, frames, purity),
        find_frozen_model(levels, frames, purity),
        find_frequent_evaluation(levels, frames, purity.program),
        find_resized_embeddings(levels, purity),
        find_saved_view(levels, purity.program),
        find_loaded_again(levels, purity),
        find_mapped_again(levels, frames, purity),
        find_forward_gradient(levels, purity.program),
        find_attached_fake(levels),
        find_mapped_condition(levels, purity.program),
        find_networks_in_turn(levels, purity.program),
        find_eager_function(levels, frames, purity.program),
    )
    yield from filter(None, found)
    for path, file in {level.frame.file: level.file for level in levels}.items():
        for search in _IN_FILES:
            yield from search(path, file)
