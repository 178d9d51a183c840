module posthorn.example/receiver

go 1.21
