# cmake --install, find_package(fcap) and pkg-config fcap.
include(CMakePackageConfigHelpers)

install(TARGETS fcap EXPORT fcap_targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
                                         ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${fcap_public_include}/fcap ${fcap_generated_include}/fcap
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(EXPORT fcap_targets FILE fcapTargets.cmake NAMESPACE fcap::
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/fcap)

configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/cmake/fcapConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/fcapConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/fcap)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/fcapConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/fcapConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/fcapConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/fcap)

# A shared libfcap names its libraries itself: whoever links it needs no development package of theirs.
if(BUILD_SHARED_LIBS)
  set(fcap_pc_private "")
else()
  set(fcap_pc_tls "")
  if(FCAP_TLS)
    set(fcap_pc_tls " libssl")
  endif()
  set(fcap_pc_private "Requires.private: libpq libxxhash${fcap_pc_tls}\nLibs.private: -ldate-tz -lroaring -lpthread\n")
endif()
file(RELATIVE_PATH FCAP_PC_TO_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(${PROJECT_SOURCE_DIR}/cmake/fcap.pc.in ${CMAKE_CURRENT_BINARY_DIR}/fcap.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/fcap.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
