//! The parts of the MPI library that are used: declarations only.

pub use ::mpi::ffi::{
    MPI_Abort, MPI_Comm_dup, MPI_Comm_free, MPI_Comm_get_errhandler, MPI_Comm_rank, MPI_Comm_set_errhandler,
    MPI_Comm_size, MPI_Comm_split, MPI_Comm_split_type, MPI_Comm_test_inter, MPI_Errhandler_free, MPI_Error_string,
    MPI_Finalize, MPI_Finalized, MPI_Get_count, MPI_Get_library_version, MPI_Iallgather, MPI_Iallreduce, MPI_Ibcast,
    MPI_Info_create, MPI_Info_free, MPI_Info_set, MPI_Init_thread, MPI_Initialized, MPI_Iprobe, MPI_Irecv,
    MPI_Is_thread_main, MPI_Isend, MPI_Query_thread, MPI_Test, MPI_Testsome, MPI_Win_allocate_shared, MPI_Win_free,
    MPI_Win_lock_all, MPI_Win_set_errhandler, MPI_Win_shared_query, MPI_Win_sync, MPI_Win_unlock_all,
};
pub use ::mpi::ffi::{MPI_Aint, MPI_Comm, MPI_Request, MPI_Status, MPI_Win, RSMPI_Comm_f2c, RSMPI_Fint};
pub use ::mpi::ffi::{
    MPI_ERR_IN_STATUS, MPI_MAX_ERROR_STRING, MPI_MAX_LIBRARY_VERSION_STRING, MPI_MODE_NOCHECK, MPI_SUCCESS,
};
pub use ::mpi::ffi::{
    RSMPI_ANY_SOURCE, RSMPI_COMM_NULL, RSMPI_COMM_TYPE_SHARED, RSMPI_COMM_WORLD, RSMPI_ERRORS_RETURN, RSMPI_INFO_NULL,
    RSMPI_INT64_T, RSMPI_MAX, RSMPI_MIN, RSMPI_REQUEST_NULL, RSMPI_SUM, RSMPI_THREAD_MULTIPLE, RSMPI_THREAD_SERIALIZED,
    RSMPI_UINT64_T, RSMPI_WIN_NULL,
};
