"""Names that are no operations: `tests/torch_api/test_shims.py` has them."""

from .base import elsewhere

elsewhere("""
    are_deterministic_algorithms_enabled clear_autocast_cache compile get_default_device get_deterministic_debug_mode get_float32_matmul_precision
    get_num_interop_threads cond get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype set_autocast_dtype
    set_autocast_enabled loop while_loop is_autocast_cache_enabled is_autocast_cpu_enabled is_autocast_enabled is_deterministic_algorithms_warn_only_enabled
    is_storage is_warn_always_enabled set_default_device set_default_tensor_type set_deterministic_debug_mode set_float32_matmul_precision
    set_flush_denormal set_num_interop_threads set_warn_always typename use_deterministic_algorithms""")
elsewhere("bfloat16")  # tests/arrays/test_bfloat16.py

# Of test_run.py, test_files.py, test_func.py, test_sparse.py and test_array_api.py.
elsewhere("as_torch load save vmap sparse_coo_tensor spmm to_dense to_sparse to_device")
# Of tests/sparse.
elsewhere("""
    sparse_compressed_tensor sparse_csr_tensor sparse_csc_tensor sparse_bsr_tensor sparse_bsc_tensor to_sparse_coo to_sparse_csr to_sparse_csc to_sparse_bsr to_sparse_bsc
    smm dsmm hsmm hspmm sspaddmm sparse_mask sparse_resize_ sparse_resize_and_clear_ resize_as_sparse_ coalesce is_coalesced indices values crow_indices col_indices
    ccol_indices row_indices sparse_dim dense_dim""")

# Of test_libraries.py.
elsewhere("asarray from_dlpack frombuffer new resize")

# Of tests/xla/test_mesh.py.
elsewhere("full_tensor redistribute to_local")
