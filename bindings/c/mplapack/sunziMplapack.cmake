# The imported targets sunzi::mplapack_gmp and sunzi::mplapack_mpfr, where they are installed; sunziConfig.cmake reads this.
get_filename_component(_sunzi_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
foreach(_kind gmp mpfr)
  set(_library "${_sunzi_prefix}/lib/libsunzi_mplapack_${_kind}.so.0")
  if(EXISTS "${_library}" AND NOT TARGET sunzi::mplapack_${_kind})
    add_library(sunzi::mplapack_${_kind} SHARED IMPORTED)
    if(_kind STREQUAL gmp)
      set(_numbers gmpxx gmp)
    else()
      set(_numbers mpfr gmp)
    endif()
    set_target_properties(sunzi::mplapack_${_kind} PROPERTIES
      IMPORTED_LOCATION "${_library}"
      IMPORTED_SONAME "libsunzi_mplapack_${_kind}.so.0"
      INTERFACE_LINK_LIBRARIES "sunzi::sunzi;${_numbers}"
      INTERFACE_INCLUDE_DIRECTORIES "${_sunzi_prefix}/include")
  endif()
endforeach()
unset(_kind)
unset(_library)
unset(_numbers)
unset(_sunzi_prefix)
