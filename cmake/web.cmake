# embed_web(<target>): compiles web/ and ECharts into <target> as web_assets() (src/serve/web_assets.h). Without network
# the first configuration goes on without ECharts: the page then says that its charts are missing.
find_package(Python3 REQUIRED COMPONENTS Interpreter)

function(embed_web target)
  set(files ${CMAKE_SOURCE_DIR}/web/index.html ${CMAKE_SOURCE_DIR}/web/page.css ${CMAKE_SOURCE_DIR}/web/page.js
            ${CMAKE_SOURCE_DIR}/web/charts.js ${CMAKE_SOURCE_DIR}/web/chat.js ${CMAKE_SOURCE_DIR}/web/icon.svg)
  set(arguments ${files})
  execute_process(COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/fetch_echarts.py
                  OUTPUT_VARIABLE echarts OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_VARIABLE reason RESULT_VARIABLE failed)
  if(failed)
    message(WARNING "The live page is built without charts. ${reason}")
  else()
    list(APPEND files ${echarts})
    list(APPEND arguments echarts.js=${echarts})
  endif()
  set(output ${CMAKE_BINARY_DIR}/generated/web_assets.cpp)
  add_custom_command(OUTPUT ${output}
                     COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/embed_web.py ${output} ${arguments}
                     DEPENDS ${files} ${CMAKE_SOURCE_DIR}/tools/embed_web.py
                     COMMENT "Embedding the live page" VERBATIM)
  target_sources(${target} PRIVATE ${output})
endfunction()
