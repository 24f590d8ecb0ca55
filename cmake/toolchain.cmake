# Compiler flags, and the faster tools where they are installed: ccache and mold.
add_compile_options(-Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wno-unknown-warning-option
                    -Wno-missing-field-initializers -fno-math-errno -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # gcc 12 reports these falsely inside the standard library once it inlines.
  add_compile_options(-Wno-restrict -Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-stringop-overread
                      -Wno-array-bounds -Wno-dangling-pointer -Wno-free-nonheap-object)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # libstdc++ 12's own std::stable_sort uses what it deprecates.
  add_compile_options(-Wno-deprecated-declarations)
endif()
if(ASSAY_WERROR)
  add_compile_options(-Werror)
endif()

string(REPLACE "-O2" "-O2 -g1" CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

if(ASSAY_SANITIZE)
  add_compile_options(-fsanitize=${ASSAY_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all -O1)
  string(REPLACE "fuzzer-no-link," "" ASSAY_SANITIZE_LINK "${ASSAY_SANITIZE}")
  add_link_options(-fsanitize=${ASSAY_SANITIZE_LINK})
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()
find_program(MOLD_PROGRAM mold)
if(MOLD_PROGRAM AND CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang")
  add_link_options(-fuse-ld=mold)
endif()
