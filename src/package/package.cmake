# What `cmake --install` and `cpack` bring along: the command, the linker step, manual
# pages, completions, the library for programs and for CMake and pkg-config, the documents.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(here ${CMAKE_CURRENT_LIST_DIR})

install(TARGETS mo-link EXPORT mo-link-targets RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(PROGRAMS src/mo-link-bisect DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS ld RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/mo-link)
foreach(name ld.bfd ld.gold ld.lld ld.mold)
  install(FILES ${CMAKE_BINARY_DIR}/libexec/mo-link/${name}
    DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/mo-link)
endforeach()

# The options of the manual are those of --help.
set(manual ${CMAKE_BINARY_DIR}/mo-link.1)
add_custom_command(OUTPUT ${manual} VERBATIM
  DEPENDS mo-link ${CMAKE_SOURCE_DIR}/docs/mo-link.1.in ${here}/manual.awk
  COMMAND mo-link --help > ${manual}.help
  COMMAND awk -f ${here}/manual.awk ${manual}.help ${CMAKE_SOURCE_DIR}/docs/mo-link.1.in
    > ${manual})
add_custom_target(manual ALL DEPENDS ${manual})
install(FILES ${manual} ${CMAKE_SOURCE_DIR}/docs/mo-link-bisect.1
  DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)

install(FILES ${here}/mo-link.bash RENAME mo-link
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${here}/_mo-link DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)

install(TARGETS mo EXPORT mo-link-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/mo DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
set(MO_LINK_LINKER_DIR ${CMAKE_INSTALL_LIBEXECDIR}/mo-link)
set(cmake_folder ${CMAKE_INSTALL_LIBDIR}/cmake/mo-link)
configure_package_config_file(${here}/mo-link-config.cmake.in mo-link-config.cmake
  INSTALL_DESTINATION ${cmake_folder} PATH_VARS MO_LINK_LINKER_DIR)
write_basic_package_version_file(mo-link-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/mo-link-config.cmake
  ${CMAKE_BINARY_DIR}/mo-link-config-version.cmake DESTINATION ${cmake_folder})
install(EXPORT mo-link-targets NAMESPACE mo-link:: DESTINATION ${cmake_folder})
file(RELATIVE_PATH up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /) # so that it can be moved
configure_file(${here}/mo-link.pc.in mo-link.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/mo-link.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(FILES README.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md")

# `cpack` in the build folder makes mo-link_VERSION_ARCHITECTURE.deb.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "the authors of mo-link")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "link-time machine-code outliner")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "binutils")
# Only for programs that use the library.
set(CPACK_DEBIAN_PACKAGE_SUGGESTS
  "libelf-dev, libdwarf-dev, libzydis-dev, libxxhash-dev, zlib1g-dev, libjansson-dev")
include(CPack)
