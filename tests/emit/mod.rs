//! Generated kernels on the GPU, against plain arithmetic: natively and in browsers, through [`emit_tests`].

pub mod build;
pub mod contractions;
pub mod functions;
pub mod nests;
pub mod operators;
pub mod staged;
pub mod subgroups;
pub mod values;

/// Calls a macro with the module and the name of every test, an async function of a device.
macro_rules! emit_tests {
    ($make:ident) => {
        $make!(operators, integer_operators_wrap_and_are_defined_everywhere);
        $make!(operators, float_operators_follow_ieee_754_at_the_edges);
        $make!(operators, casts_round_wrap_and_saturate_exactly);
        $make!(operators, stores_round_and_wrap_to_the_dtype_of_the_node);
        $make!(functions, functions_are_as_close_as_documented);
        $make!(functions, functions_of_two_are_as_close_as_documented);
        $make!(functions, random_numbers_are_those_of_the_definition);
        $make!(nests, a_matrix_product_sums_over_what_stands_on_the_right);
        $make!(nests, few_points_with_long_reductions_are_shared_by_a_workgroup);
        $make!(nests, softmax_by_inline_reductions_leaves_loops_where_they_belong);
        $make!(nests, argmax_takes_the_first_of_equals_and_ignores_nan);
        $make!(nests, gathers_clamp_as_the_value_that_their_type_has);
        $make!(nests, pads_hold_wherever_a_position_leaves_the_tensor);
        $make!(nests, statics_move_positions_and_are_values);
        $make!(nests, scatters_accumulate_and_drop_what_is_outside);
        $make!(nests, a_scatter_into_part_of_a_narrow_tensor_leaves_the_rest_alone);
        $make!(nests, statements_write_all_at_once);
        $make!(nests, indices_are_values_also_below_zero);
        $make!(nests, rank_0_rank_8_and_empty_ranges);
        $make!(nests, forty_tensors_of_all_dtypes_in_one_statement);
        $make!(nests, a_deep_expression_compiles);
        $make!(nests, grids_fold_beyond_one_dimension);
        $make!(contractions, products_in_four_transpositions);
        $make!(contractions, what_surrounds_a_product);
        $make!(contractions, convolutions_of_strides_and_pads);
        $make!(contractions, products_of_all_types);
        $make!(staged, products_through_workgroup_memory);
        $make!(staged, contractions_of_all_kinds_through_workgroup_memory);
    };
}
pub(crate) use emit_tests;

/// The same, of a device with all that its adapter has.
macro_rules! subgroup_tests {
    ($make:ident) => {
        $make!(subgroups, every_accumulation_of_every_type_by_subgroups);
        $make!(subgroups, extremes_by_subgroups_ignore_nan_and_reach_infinity);
        $make!(subgroups, rows_by_subgroups_are_the_same_on_every_lane);
        $make!(subgroups, a_raw_kernel_may_use_subgroups_under_their_directive);
    };
}
pub(crate) use subgroup_tests;
