/// The shell script that runs the brokers.
enum BrokerScript {
    /// Arguments: the folder, the Kafka installation, the cluster's id, and the number of brokers.
    ///
    /// `start`, `stop`, `kill`, `pause` and `resume` take broker numbers, `replace` the id of a new
    /// cluster. A broker is up when its output says so; the reader of the output reports whether that or its end came first.
    static let text = """
        folder=$1 home=$2 cluster=$3 count=$4
        cd "$folder" || exit 1
        # Clean up also when the reader of the output has ended.
        trap : PIPE
        watch() {
            while IFS= read -r line; do
                printf '%s\\n' "$line"
                case $line in *"Kafka Server started"*)
                    echo up > "up-$1"
                    exec cat
                esac
            done
            echo ended > "up-$1"
        }
        launch() {
            watch "$1" < "words-$1" >> "log-$1" &
            eval "watch_$1=$!"
            "$home/bin/kafka-server-start.sh" "broker-$1.properties" > "words-$1" 2>&1 < /dev/null &
            eval "broker_$1=$!"
        }
        begin() {
            for n in "$@"; do launch "$n"; done
            for n in "$@"; do
                read -r state < "up-$n"
                [ "$state" = up ] || { failed=$n; return 1; }
            done
        }
        signal() {
            signal=$1; shift
            for n in "$@"; do eval "kill -$signal \\$broker_$n"; done
        }
        # A paused broker must be resumed to end.
        end() {
            signal "$@"
            shift
            signal CONT "$@"
            for n in "$@"; do eval "wait \\$broker_$n; wait \\$watch_$n"; done
            return 0
        }
        answer() { if "$@"; then echo done; else tail -n 30 "log-$failed" | tr '\\n' ' '; echo failed; fi; }
        make() {
            numbers=
            for n in $(seq "$count"); do
                numbers="$numbers $n" failed=$n
                mkfifo "words-$n" "up-$n" || return 1
                "$home/bin/kafka-storage.sh" format -t "$cluster" -c "broker-$n.properties" > "log-$n" 2>&1 < /dev/null \\
                    || return 1
            done
            begin $numbers
        }
        # A new cluster at the same addresses.
        replace() {
            cluster=$1
            end KILL $numbers
            rm -rf words-* up-* data-*
            make
        }
        answer make
        while read -r command brokers; do
            case $command in
                start) answer begin $brokers ;;
                stop) answer end TERM $brokers ;;
                kill) answer end KILL $brokers ;;
                replace) answer replace "$brokers" ;;
                pause) answer signal STOP $brokers ;;
                resume) answer signal CONT $brokers ;;
            esac
        done
        end KILL $numbers 2> /dev/null
        cd / && rm -rf "$folder"
        """
}
