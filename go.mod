module busbw

go 1.26
