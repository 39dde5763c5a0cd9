"""One file of tests for each stage of the loop; they run against any file that sets out to hold it."""
