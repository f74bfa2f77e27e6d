# Fails when comments or help texts begin with no noun (scripts/check_words), or when the script finds less than it should in
# a file that has one of each. Run with -DROOT=<source folder> -P.
set(words "${ROOT}/scripts/check_words")
set(stumps "${CMAKE_CURRENT_BINARY_DIR}/check_words_stumps.h")
file(WRITE "${stumps}" [=[
struct Row {
  int width = 0;   ///< of a row
  int height = 0;  ///< rows of a block, of which
                   ///< the last may be shorter
  int depth = 0;   ///< elements
  /// That the block reads.
  int bytes = 0;
  /// Bytes that the block writes.
  /// Of those that it reads, none.
  int written = 0;
};
static const auto schema =
    Schema<Row>("row", "elements beside each other")
        .required("width", &Row::width, "of a row", at_least(1))
        .optional("height", static_cast<int Row::*>(&Row::height),
                  "the same "
                  "of columns")
        .optional("depth", &Row::depth, "planes of a row")
        .reference("device", &Row::device, "accelerators", "on which");
const DeclaredMetric kTime{{"time", "s", "launches", "all"}};
]=])
execute_process(COMMAND "${words}" "${stumps}" RESULT_VARIABLE result OUTPUT_VARIABLE found)
string(REPLACE "${stumps}:" "" found "${found}")
set(wanted "2: of a row\n5: elements\n6: That the block reads.\n14: of a row\n17: the same of columns\n19: on which\n20: launches\n")
if(NOT result EQUAL 1 OR NOT found STREQUAL wanted)
  message(FATAL_ERROR "check_words found (${result})\n${found}instead of\n${wanted}")
endif()
file(REMOVE "${stumps}")
execute_process(COMMAND "${words}" RESULT_VARIABLE result OUTPUT_VARIABLE found)
if(NOT result EQUAL 0)
  string(REPLACE "\n" "\n  " found "${found}")
  message(FATAL_ERROR "comments and help texts without their noun (scripts/check_words):\n  ${found}")
endif()
