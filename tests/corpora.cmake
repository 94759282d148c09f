# Tests over real archives: identity and the oracles. Without MO_CORPORA only the oracle that
# makes up its own instructions is left.
function(add_program name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE mo)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
endfunction()

function(add_corpora_test name label)
  add_test(NAME ${name} COMMAND ${ARGN})
  set_tests_properties(${name} PROPERTIES LABELS "${label}" TIMEOUT 1800
    SKIP_RETURN_CODE 77)
endfunction()

# SMALL: enough to meet every kind of code; ARCHIVES: all.
foreach(machine amd64=x86_64-linux-gnu=m-2.36=mvec arm64=aarch64-linux-gnu=m)
  string(REPLACE "=" ";" parts ${machine})
  list(POP_FRONT parts arch triple)
  set(top ${MO_CORPORA}/${arch}/usr/lib)
  foreach(name c lua5.4 sqlite3 crypto ${parts})
    list(APPEND ${arch}_ARCHIVES ${top}/${triple}/lib${name}.a)
  endforeach()
  list(APPEND ${arch}_ARCHIVES ${top}/gcc/${triple}/12/libstdc++.a)
  list(SUBLIST ${arch}_ARCHIVES 0 2 ${arch}_SMALL)
endforeach()

add_program(suffixtree_bench bench/suffixtree_bench.c) # for bench/speed.py

# --- identity -------------------------------------------------------------------------------

add_program(identity identity/identity.c)
add_program(identity_frames identity/frames.c identity/objects.c)
add_program(identity_tables identity/tables.c identity/objects.c)
if(MO_CORPORA)
  foreach(arch amd64 arm64)
    add_corpora_test(identity_model_${arch} identity identity ${${arch}_ARCHIVES})
    add_corpora_test(identity_frames_${arch} identity identity_frames ${${arch}_ARCHIVES})
    add_corpora_test(identity_tables_${arch} identity identity_tables ${${arch}_ARCHIVES})
    add_corpora_test(identity_cli_${arch} identity ${Python3_EXECUTABLE}
      ${CMAKE_CURRENT_SOURCE_DIR}/identity/cli.py --mo-link $<TARGET_FILE:mo-link>
      --work ${CMAKE_BINARY_DIR}/identity ${${arch}_ARCHIVES})
  endforeach()
endif()

# --- outlining all of it: verified, built and read back, nothing written --------------------

if(MO_CORPORA)
  foreach(arch amd64 arm64)
    add_corpora_test(outline_${arch} run mo-link --outline --reruns=2 --dry-run -R -o all/
      ${${arch}_ARCHIVES})
  endforeach()
endif()

# --- oracles --------------------------------------------------------------------------------

# The processor itself judges the x86-64 decoder's register sets (exit 77: it cannot).
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  add_program(oracle_x86_64 oracle/oracle_x86_64.c oracle/native_x86_64.c)
  target_link_libraries(oracle_x86_64 PRIVATE Zydis::Zydis)
  add_corpora_test(oracle_x86_64_random long oracle_x86_64 --random 200000)
  if(MO_CORPORA)
    add_corpora_test(oracle_x86_64 oracle oracle_x86_64 ${amd64_SMALL})
    add_corpora_test(oracle_x86_64_long long oracle_x86_64 ${amd64_ARCHIVES})
  endif()
endif()

# AArch64 needs an emulator.
pkg_check_modules(UNICORN IMPORTED_TARGET unicorn)
if(UNICORN_FOUND)
  add_program(oracle_aarch64 oracle/oracle_aarch64.c)
  target_link_libraries(oracle_aarch64 PRIVATE PkgConfig::UNICORN)
  add_corpora_test(oracle_aarch64_random oracle oracle_aarch64 -n 4 -r 500000)
  if(MO_CORPORA)
    add_corpora_test(oracle_aarch64 oracle oracle_aarch64 -n 8 ${arm64_ARCHIVES})
    add_corpora_test(oracle_aarch64_long long oracle_aarch64 -n 64 -r 10000000
      ${arm64_ARCHIVES})
  endif()
endif()
