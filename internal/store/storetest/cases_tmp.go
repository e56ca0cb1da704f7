package storetest

var partitionCases, commitCases, engineCases, controlCases, readerCases []examCase
