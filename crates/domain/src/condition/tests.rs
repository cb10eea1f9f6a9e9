use serde_json::json;

use super::*;

#[test]
fn what_is_not_an_operator_stands_for_itself() {
    check(
        r#"
        {"if": [true]}                                      -> true
        {"if": [17]}                                        -> 17
        {"if": [3.14]}                                      -> 3.14
        {"if": ["apple"]}                                   -> "apple"
        {"if": [null]}                                      -> null
        {"if": [["a", "b"]]}                                -> ["a", "b"]
        {"if": [{}]}                                        -> {}
        {"if": [{"a": {"var": "x"}, "b": 2}]}               -> {"a": {"var": "x"}, "b": 2}
        "#,
    );
}

#[test]
fn arrays_are_evaluated_item_by_item() {
    check(
        r#"
        {"if": [[1, {"var": "x"}, 3]]} @ {"x": 2}           -> [1, 2, 3]
        {"if": [[[{"var": "x"}], {}]]} @ {"x": 2}           -> [[2], {}]
        {"if": [[{"/": [1, 0]}]]}                           -> [null]
        {"in": [1, [{"var": "x"}, 2]]} @ {"x": 1}           -> true
        {"in": [1, [{"var": "x"}, 2]]} @ {"x": 3}           -> false
        {"map": [[{"var": "x"}, 5], {"+": [{"var": ""}, 1]}]} @ {"x": 2} -> [3, 6]
        {"merge": [[{"var": "x"}], [{"var": "y"}]]} @ {"x": 1, "y": 2}   -> [1, 2]
        "#,
    );
}

#[test]
fn equality() {
    check(
        r#"
        {"==": [1, 1]}                                      -> true
        {"==": [1, 1.0]}                                    -> true
        {"==": [1, 2]}                                      -> false
        {"==": [1, "1"]}                                    -> true
        {"==": ["1", 1]}                                    -> true
        {"==": [1, " 1 "]}                                  -> true
        {"==": [0, ""]}                                     -> true
        {"==": [0, " "]}                                    -> true
        {"==": ["a", "a"]}                                  -> true
        {"==": ["a", "b"]}                                  -> false
        {"==": [1, true]}                                   -> true
        {"==": ["1", true]}                                 -> true
        {"==": [0, false]}                                  -> true
        {"==": [null, null]}                                -> true
        {"==": [null, 0]}                                   -> false
        {"==": [null, false]}                               -> false
        {"==": [null, ""]}                                  -> false
        {"==": [{"var": "x"}, null]}                        -> true
        {"==": [[], 0]}                                     -> true
        {"==": [[1.0], "1"]}                                -> true
        {"==": [[1, [2, null]], "1,2,"]}                    -> true
        {"==": [[3], 3]}                                    -> true
        {"==": [[], []]}                                    -> false
        {"==": [{}, {}]}                                    -> false
        {"==": [{"var": "x"}, {"var": "x"}]} @ {"x": [1]}   -> true
        {"==": [{}, "[object Object]"]}                     -> true
        {"==": [{}, 1]}                                     -> false
        {"==": [true, [1]]}                                 -> true
        {"==": ["inf", {"/": [1, 0]}]}                      -> false
        {"==": ["Infinity", {"/": [1, 0]}]}                 -> true
        {"==": [{"/": [1, 0]}, {"/": [2, 0]}]}              -> true
        {"==": [{"/": [0, 0]}, {"/": [0, 0]}]}              -> false
        {"==": [{"/": [0, 0]}, null]}                       -> false
        {"!=": [1, 2]}                                      -> true
        {"!=": [1, 1]}                                      -> false
        {"!=": [1, "1"]}                                    -> false
        {"===": [1, 1]}                                     -> true
        {"===": [1, 1.0]}                                   -> true
        {"===": [1, "1"]}                                   -> false
        {"===": [1, 2]}                                     -> false
        {"===": [null, {"/": [0, 0]}]}                      -> false
        {"===": [{"/": [1, 0]}, {"/": [2, 0]}]}             -> true
        {"===": [0, "0"]}                                   -> false
        {"===": [0, {"+": "0"}]}                            -> true
        {"!==": [1, 2]}                                     -> true
        {"!==": [1, 1]}                                     -> false
        {"!==": [1, "1"]}                                   -> true
        "#,
    );
}

#[test]
fn order() {
    check(
        r#"
        {">": [2, 1]}                                       -> true
        {">": [1, 1]}                                       -> false
        {">": [1, 2]}                                       -> false
        {">": ["2", 1]}                                     -> true
        {">": ["10", "9"]}                                  -> false
        {">": ["a", 1]}                                     -> false
        {">=": [2, 1]}                                      -> true
        {">=": [1, 1]}                                      -> true
        {">=": [1, 2]}                                      -> false
        {">=": ["2", 1]}                                    -> true
        {">=": [null, 0]}                                   -> true
        {"<": [2, 1]}                                       -> false
        {"<": [1, 1]}                                       -> false
        {"<": [1, 2]}                                       -> true
        {"<": ["1", 2]}                                     -> true
        {"<": ["a", "b"]}                                   -> true
        {"<": [false, true]}                                -> true
        {"<": [{"-": ["x", 1]}, 10]}                        -> false
        {"<": [10, {"/": [1, 0]}]}                          -> true
        {"<": [1, 2, 3]}                                    -> true
        {"<": [1, 1, 3]}                                    -> false
        {"<": [1, 4, 3]}                                    -> false
        {"<=": [2, 1]}                                      -> false
        {"<=": [1, 1]}                                      -> true
        {"<=": [1, 2]}                                      -> true
        {"<=": ["1", 2]}                                    -> true
        {"<=": [null, 0]}                                   -> true
        {"<=": [[1], [1]]}                                  -> true
        {"<=": [{}, "a"]}                                   -> true
        {"<=": [1, 2, 3]}                                   -> true
        {"<=": [1, 1, 3]}                                   -> true
        {"<=": [1, 4, 3]}                                   -> false
        "#,
    );
}

#[test]
fn truth() {
    check(
        r#"
        {"!": [false]}                                      -> true
        {"!": false}                                        -> true
        {"!": [true]}                                       -> false
        {"!": true}                                         -> false
        {"!": 0}                                            -> true
        {"!": [0.0]}                                        -> true
        {"!": 1}                                            -> false
        {"!": [[]]}                                         -> true
        {"!": [""]}                                         -> true
        {"!": ["0"]}                                        -> false
        {"!": [null]}                                       -> true
        {"!!": [[]]}                                        -> false
        {"!!": [[0]]}                                       -> true
        {"!!": [{}]}                                        -> true
        {"!!": [0]}                                         -> false
        {"!!": [-1]}                                        -> true
        {"!!": [""]}                                        -> false
        {"!!": ["0"]}                                       -> true
        {"!!": [{"/": [0, 0]}]}                             -> false
        {"!!": [{"/": [1, 0]}]}                             -> true
        "#,
    );
}

#[test]
fn and_and_or_stop_where_the_answer_is_known() {
    check(
        r#"
        {"or": [true, true]}                                -> true
        {"or": [false, true]}                               -> true
        {"or": [true, false]}                               -> true
        {"or": [false, false]}                              -> false
        {"or": [false, false, true]}                        -> true
        {"or": [false]}                                     -> false
        {"or": true}                                        -> true
        {"or": [1, 3]}                                      -> 1
        {"or": [3, false]}                                  -> 3
        {"or": [false, 3]}                                  -> 3
        {"or": [[], true]}                                  -> true
        {"or": ["0", true]}                                 -> "0"
        {"or": [0, ""]}                                     -> ""
        {"and": [true, true]}                               -> true
        {"and": [false, true]}                              -> false
        {"and": [true, false]}                              -> false
        {"and": [false, false]}                             -> false
        {"and": [true, true, false]}                        -> false
        {"and": [true]}                                     -> true
        {"and": [1, 3]}                                     -> 3
        {"and": [3, false]}                                 -> false
        {"and": [false, 3]}                                 -> false
        {"and": [[], true]}                                 -> []
        {"and": [0, true]}                                  -> 0
        {"and": ["", true]}                                 -> ""
        {"and": ["0", true]}                                -> true
        {"and": [{">": [3, 1]}, {"!": true}]}               -> false
        {"and": [{">": [3, 1]}, {"<": [1, 3]}]}             -> true
        "#,
    );
}

#[test]
fn a_choice() {
    check(
        r#"
        {"if": []}                                          -> null
        {"if": [false]}                                     -> false
        {"if": "apple"}                                     -> "apple"
        {"if": [true, 1]}                                   -> 1
        {"if": [false, 1]}                                  -> null
        {"if": [true, 1, 2]}                                -> 1
        {"if": [false, 1, 2]}                               -> 2
        {"if": [[], 1, 2]}                                  -> 2
        {"if": [[0], 1, 2]}                                 -> 1
        {"if": ["", 1, 2]}                                  -> 2
        {"if": ["0", 1, 2]}                                 -> 1
        {"if": [0, 1, 2]}                                   -> 2
        {"if": [-1, 1, 2]}                                  -> 1
        {"if": [{"+": "0"}, 1, 2]}                          -> 2
        {"if": [{">": [2, 1]}, {"cat": ["a", "b"]}, 2]}     -> "ab"
        {"if": [{">": [1, 2]}, 1, {"cat": ["a", "b"]}]}     -> "ab"
        {"if": [true, 1, true, 2]}                          -> 1
        {"if": [false, 1, true, 2]}                         -> 2
        {"if": [false, 1, false, 2]}                        -> null
        {"if": [false, 1, false, 2, 3]}                     -> 3
        {"if": [false, 1, true, 2, 3]}                      -> 2
        {"if": [false, 1, false, 2, false, 3]}              -> null
        {"if": [false, 1, false, 2, true, 3, 4]}            -> 3
        {"if": [false, 1, false, 2, false, 3, 4]}           -> 4
        {"?:": [true, 1, 2]}                                -> 1
        {"?:": [{">": [1, 3]}, "visible", "hidden"]}        -> "hidden"
        "#,
    );
}

#[test]
fn arithmetic() {
    check(
        r#"
        {"+": [1, 2]}                                       -> 3
        {"+": [2, 2, 2]}                                    -> 6
        {"+": []}                                           -> 0
        {"+": [1]}                                          -> 1
        {"+": ["1", 1]}                                     -> 2
        {"+": "3.14"}                                       -> 3.14
        {"+": ["2020-01-31", 1]}                            -> 2021
        {"+": [" -1.5e1x", 0]}                              -> -15
        {"+": [".5", "5."]}                                 -> 5.5
        {"+": ["1e", 1]}                                    -> 2
        {"+": [[4, 5], 1]}                                  -> 5
        {"+": [0.1, 0.2]}                                   -> 0.30000000000000004
        {"+": [1e300, 0]}                                   -> 1e300
        {"+": [9007199254740991, 1]}                        -> 9007199254740992
        {"+": [1e308, 1e308]}                               -> null
        {"+": ["apple", 1]}                                 -> null
        {"+": [true, 1]}                                    -> null
        {"+": [null, 1]}                                    -> null
        {"*": [3, 2]}                                       -> 6
        {"*": [2, 2, 2]}                                    -> 8
        {"*": [1]}                                          -> 1
        {"*": ["2", 2]}                                     -> 4
        {"*": [-1, 0]}                                      -> 0
        {"-": [2, 3]}                                       -> -1
        {"-": [3]}                                          -> -3
        {"-": 3}                                            -> -3
        {"-": ["1", 1]}                                     -> 0
        {"-": [true, null]}                                 -> 1
        {"-": ["1a", 1]}                                    -> null
        {"/": [4, 2]}                                       -> 2
        {"/": [2, 4]}                                       -> 0.5
        {"/": ["1", 1]}                                     -> 1
        {"/": [1, 0]}                                       -> null
        {"%": [1, 2]}                                       -> 1
        {"%": [2, 2]}                                       -> 0
        {"%": [-3, 2]}                                      -> -1
        {"%": [5.5, 2]}                                     -> 1.5
        {"%": [1, 0]}                                       -> null
        {"max": [1, 3, 2]}                                  -> 3
        {"max": [1]}                                        -> 1
        {"max": ["2", true]}                                -> 2
        {"max": [1, "apple", 3]}                            -> null
        {"max": ["apple", 3]}                               -> null
        {"min": [3, 1, 2]}                                  -> 1
        {"min": [1]}                                        -> 1
        {"min": [1, "apple"]}                               -> null
        {"max": {"var": "x"}} @ {"x": 4}                    -> 4
        "#,
    );
}

#[test]
fn texts() {
    check(
        r#"
        {"cat": "ice"}                                      -> "ice"
        {"cat": ["ice"]}                                    -> "ice"
        {"cat": []}                                         -> ""
        {"cat": ["ice", "cream"]}                           -> "icecream"
        {"cat": [1, 2]}                                     -> "12"
        {"cat": ["Robocop", 2]}                             -> "Robocop2"
        {"cat": ["a", null, "b"]}                           -> "ab"
        {"cat": [1.0, " ", 1.5, " ", -0.0]}                 -> "1 1.5 0"
        {"cat": [1e21, " ", 1e20, " ", 1.5e300]}            -> "1e+21 100000000000000000000 1.5e+300"
        {"cat": [0.000001, " ", 1e-7]}                      -> "0.000001 1e-7"
        {"cat": [true, [1, null, [2, 3]], {}]}              -> "true1,,2,3[object Object]"
        {"cat": [{"/": [0, 0]}, {"/": [-1, 0]}]}            -> "NaN-Infinity"
        {"substr": ["jsonlogic", 4]}                        -> "logic"
        {"substr": ["jsonlogic", -5]}                       -> "logic"
        {"substr": ["jsonlogic", -50]}                      -> "jsonlogic"
        {"substr": ["jsonlogic", 50]}                       -> ""
        {"substr": ["jsonlogic", 0, 1]}                     -> "j"
        {"substr": ["jsonlogic", -1, 1]}                    -> "c"
        {"substr": ["jsonlogic", 4, 5]}                     -> "logic"
        {"substr": ["jsonlogic", -5, 5]}                    -> "logic"
        {"substr": ["jsonlogic", -5, -2]}                   -> "log"
        {"substr": ["jsonlogic", 1, -5]}                    -> "son"
        {"substr": ["jsonlogic", 1, -50]}                   -> ""
        {"substr": ["jsonlogic", 4, null]}                  -> ""
        {"substr": ["jsonlogic", "4", 1e300]}               -> "logic"
        {"substr": ["jsonlogic", 1.9, "x"]}                 -> ""
        {"substr": ["öäü", 1, 1]}                           -> "ä"
        {"substr": [12345, 1, 2]}                           -> "23"
        {"in": ["Spring", "Springfield"]}                   -> true
        {"in": ["i", "team"]}                               -> false
        {"in": ["", ""]}                                    -> false
        {"in": [2, "123"]}                                  -> true
        {"in": ["a", null]}                                 -> false
        {"in": ["Bart", ["Bart", "Homer"]]}                 -> true
        {"in": ["Milhouse", ["Bart", "Homer"]]}             -> false
        {"in": [1, ["1"]]}                                  -> false
        {"in": [1, [1.0]]}                                  -> true
        {"in": [{"/": [0, 0]}, [null]]}                     -> false
        {"in": [{"var": "x"}, ["a", "b"]]} @ {"x": "b"}     -> true
        "#,
    );
}

#[test]
fn arrays() {
    check(
        r#"
        {"merge": []}                                       -> []
        {"merge": [[1]]}                                    -> [1]
        {"merge": [[1], []]}                                -> [1]
        {"merge": [[1], [2], [3]]}                          -> [1, 2, 3]
        {"merge": [[1, 2], [3]]}                            -> [1, 2, 3]
        {"merge": 1}                                        -> [1]
        {"merge": [1, [2, [3]]]}                            -> [1, 2, [3]]
        {"filter": [{"var": "x"}, true]} @ {"x": [1, 2]}    -> [1, 2]
        {"filter": [{"var": "x"}, false]} @ {"x": [1, 2]}   -> []
        {"filter": [{"var": "x"}, {">=": [{"var": ""}, 2]}]} @ {"x": [1, 2, 3]} -> [2, 3]
        {"filter": [{"var": "x"}, {"%": [{"var": ""}, 2]}]} @ {"x": [1, 2, 3]}  -> [1, 3]
        {"filter": [{"var": "x"}, true]} @ {"x": "text"}    -> []
        {"map": [{"var": "x"}, {"*": [{"var": ""}, 2]}]} @ {"x": [1, 2, 3]}     -> [2, 4, 6]
        {"map": [{"var": "x"}, {"*": [{"var": ""}, 2]}]}    -> []
        {"map": [{"var": "x"}, {"var": "q"}]} @ {"x": [{"q": 1}, {"q": 2}, 3]}  -> [1, 2, null]
        {"reduce": [[1, 2, 3, 4], {"+": [{"var": "current"}, {"var": "accumulator"}]}, 0]} -> 10
        {"reduce": [[1, 2, 3, 4], {"*": [{"var": "current"}, {"var": "accumulator"}]}, 1]} -> 24
        {"reduce": [[1, 2], {"*": [{"var": "current"}, {"var": "accumulator"}]}, 0]}       -> 0
        {"reduce": [{"var": "x"}, {"var": "current"}, 7]}   -> 7
        {"reduce": [{"var": "x"}, {"var": "current"}]}      -> null
        {"reduce": [[1], {"var": ""}]}                      -> {"current": 1, "accumulator": null}
        {"reduce": [[1], {"var": "x"}, 2]} @ {"x": 3}       -> null
        {"reduce": [{"var": "x"}, {"+": [{"var": "accumulator"}, {"var": "current.q"}]}, 0]} @ {"x": [{"q": 1}, {"q": 2}]} -> 3
        {"all": [[1, 2], {">=": [{"var": ""}, 1]}]}         -> true
        {"all": [[1, 2], {"==": [{"var": ""}, 1]}]}         -> false
        {"all": [[], true]}                                 -> false
        {"all": [{"var": "x"}, {">": [{"var": "q"}, 1]}]} @ {"x": [{"q": 2}, {"q": 1}]}  -> false
        {"none": [[1, 2], {">=": [{"var": ""}, 2]}]}        -> false
        {"none": [[1, 2], {"<": [{"var": ""}, 1]}]}         -> true
        {"none": [[], true]}                                -> true
        {"none": [{"var": "x"}, {">": [{"var": "q"}, 1]}]} @ {"x": [{"q": 2}, {"q": 1}]} -> false
        {"some": [[1, 2], {">=": [{"var": ""}, 2]}]}        -> true
        {"some": [[1, 2], {"<": [{"var": ""}, 1]}]}         -> false
        {"some": [[], true]}                                -> false
        {"some": [{"var": "x"}, {">": [{"var": "q"}, 1]}]} @ {"x": [{"q": 2}, {"q": 1}]} -> true
        "#,
    );
}

#[test]
fn variables() {
    check(
        r#"
        {"var": ["a"]} @ {"a": 1}                           -> 1
        {"var": "a"} @ {"a": 1}                             -> 1
        {"var": "b"} @ {"a": 1}                             -> null
        {"var": "a"}                                        -> null
        {"var": ["a", 1]}                                   -> 1
        {"var": ["b", 2]} @ {"a": 1}                        -> 2
        {"var": ["a", 2]} @ {"a": null}                     -> null
        {"var": "a.b"} @ {"a": {"b": "c"}}                  -> "c"
        {"var": "a.q"} @ {"a": {"b": "c"}}                  -> null
        {"var": ["a.q", 9]} @ {"a": {"b": "c"}}             -> 9
        {"var": ["a.b.c", 9]} @ {"a": {"b": null}}          -> 9
        {"var": 1} @ ["apple", "banana"]                    -> "banana"
        {"var": "1"} @ ["apple", "banana"]                  -> "banana"
        {"var": "1.1"} @ ["apple", ["banana", "beer"]]      -> "beer"
        {"var": 1.1} @ ["apple", ["banana", "beer"]]        -> "beer"
        {"var": -1} @ ["apple", "banana"]                   -> null
        {"var": "0"} @ {"0": "zero"}                        -> "zero"
        {"var": ""} @ 1                                     -> 1
        {"var": null} @ 1                                   -> 1
        {"var": []} @ 1                                     -> 1
        {"var": {"var": "p"}} @ {"p": "a", "a": 1}          -> 1
        {"var": ["x", {"var": "a"}]} @ {"a": 1}             -> 1
        {"var": [{"?:": [{"<": [{"var": "n"}, 2]}, "a.b", "c"]}]} @ {"n": 1, "a": {"b": 5}} -> 5
        {"missing": []}                                     -> []
        {"missing": "a"}                                    -> ["a"]
        {"missing": ["a"]} @ {"a": "apple"}                 -> []
        {"missing": ["a", "b"]} @ {"a": "apple"}            -> ["b"]
        {"missing": ["a", "b", "c"]} @ {"a": "", "b": null, "c": 0} -> ["a", "b"]
        {"missing": [["a", "b"], "c"]} @ {"a": 1}           -> ["b"]
        {"missing": ["a.b", "a.c"]} @ {"a": {"b": 1}}       -> ["a.c"]
        {"missing": [1, 0]} @ ["apple"]                     -> [1]
        {"missing": {"merge": ["vin", {"if": [{"var": "f"}, ["apr"], []]}]}} @ {"f": true}  -> ["vin", "apr"]
        {"missing": {"merge": ["vin", {"if": [{"var": "f"}, ["apr"], []]}]}} @ {"f": false} -> ["vin"]
        {"if": [{"missing": "a"}, "missed", "found"]} @ {"a": "apple"} -> "found"
        {"if": [{"missing": "a"}, "missed", "found"]}       -> "missed"
        {"missing_some": [1, ["a", "b"]]} @ {"a": 1}        -> []
        {"missing_some": [1, ["a", "b"]]} @ {"c": 1}        -> ["a", "b"]
        {"missing_some": [2, ["a", "b", "c"]]} @ {"a": 1, "c": 1} -> []
        {"missing_some": [2, ["a", "b", "c"]]} @ {"a": 1, "d": 1} -> ["b", "c"]
        {"missing_some": ["2", ["a", "b"]]} @ {"a": 1}      -> ["b"]
        {"missing_some": [1, "a"]}                          -> ["a"]
        "#,
    );
}

#[test]
fn only_true_is_enough() {
    for value in [json!(1), json!("true"), json!([true]), json!({}), json!(null), json!(false)] {
        assert!(!rule(json!({ "var": "x" })).holds(&json!({ "x": value })), "{value}");
    }
    assert!(rule(json!({ "var": "x" })).holds(&json!({ "x": true })));
}

#[test]
fn what_is_refused() {
    refuse("1", "`condition` must be a JSON object with one operator");
    refuse("[]", "`condition` must be a JSON object with one operator");
    refuse("{}", "`condition` must be a JSON object with one operator");
    refuse(r#"{"!": 1, "!!": 1}"#, "`condition` must be a JSON object with one operator");
    refuse(r#"{"equals": 1}"#, "`condition` has no operator `equals`");
    refuse(r#"{"log": "x"}"#, "`condition` has no operator `log`");
    refuse(r#"{"if": [1, [2, {"": 1}]]}"#, "`condition.if[1][1]` has no operator ``");
    refuse(r#"{"and": [true, {">": 1}]}"#, "`condition.and[1].>` must have 2 arguments");
    refuse(r#"{"!": {"!!": []}}"#, "`condition.!.!!` must have 1 argument");
    refuse(r#"{"and": []}"#, "`condition.and` must have at least 1 argument");
    refuse(r#"{"<": [1]}"#, "`condition.<` must have 2 or 3 arguments");
    refuse(r#"{"-": []}"#, "`condition.-` must have 1 or 2 arguments");
    refuse(r#"{"var": [1, 2, 3]}"#, "`condition.var` must have at most 2 arguments");
}

/// One row per operator: the valid numbers of arguments, of 0 to 4.
#[test]
fn how_many_arguments_an_operator_takes() {
    let table = [
        ("var", "012"),
        ("missing", "01234"),
        ("missing_some", "2"),
        ("if", "01234"),
        ("?:", "01234"),
        ("==", "2"),
        ("!=", "2"),
        ("===", "2"),
        ("!==", "2"),
        ("!", "1"),
        ("!!", "1"),
        ("or", "1234"),
        ("and", "1234"),
        (">", "2"),
        (">=", "2"),
        ("<", "23"),
        ("<=", "23"),
        ("max", "1234"),
        ("min", "1234"),
        ("+", "01234"),
        ("-", "12"),
        ("*", "1234"),
        ("/", "2"),
        ("%", "2"),
        ("map", "2"),
        ("reduce", "23"),
        ("filter", "2"),
        ("all", "2"),
        ("none", "2"),
        ("some", "2"),
        ("merge", "01234"),
        ("in", "2"),
        ("cat", "01234"),
        ("substr", "23"),
    ];
    for (symbol, expected) in table {
        let takes = |count: &usize| Rule::new(json!({ symbol: vec![1; *count] })).is_ok();
        let actual = (0..=4).filter(takes).map(|count| count.to_string()).collect::<String>();
        assert_eq!(actual, expected, "{symbol}");
    }
}

#[test]
fn a_rule_is_nested_to_a_bound() {
    let nested = |levels| (0..levels).fold(json!(false), |inner, _| json!({ "!": inner }));
    assert!(!rule(nested(Rule::MAX_DEPTH)).holds(&Value::Null));
    let error = Rule::new(nested(Rule::MAX_DEPTH + 1)).unwrap_err();
    assert_eq!(error, Invalid::new("condition", Reason::TooDeep { max: Rule::MAX_DEPTH }));
}

#[test]
fn a_rule_has_values_to_a_bound() {
    // The object and the array count as values.
    let long = |values| json!({ "max": (2..values).collect::<Vec<_>>() });
    let last = rule(long(Rule::MAX_NODES)).evaluate(&Value::Null);
    assert_eq!(last, json!(Rule::MAX_NODES - 1));
    let error = Rule::new(long(Rule::MAX_NODES + 1)).unwrap_err();
    assert_eq!(error, Invalid::new("condition", Reason::TooMany { max: Rule::MAX_NODES }));

    let wide = |size: usize| json!({ "!": "x".repeat(size - r#"{"!":""}"#.len()) });
    assert!(Rule::new(wide(Rule::MAX_SIZE)).is_ok());
    let error = Rule::new(wide(Rule::MAX_SIZE + 1)).unwrap_err();
    let reason = Reason::TooLong { max: Rule::MAX_SIZE, unit: crate::error::Unit::Bytes };
    assert_eq!(error, Invalid::new("condition", reason));
}

#[test]
fn a_bottomless_rule_is_refused_and_not_followed() {
    assert!(Rule::new(bottomless()).is_err());
    let map = [("!".to_owned(), bottomless())].into_iter().collect();
    assert!(Rule::try_from(Value::Object(map)).is_err());
}

#[test]
fn bottomless_data_is_not_followed() {
    let data = Value::Array(vec![bottomless(), json!(1)]);
    let table = [
        (json!({ "var": "" }), json!(null)),
        (json!({ "cat": { "var": "" } }), json!(null)),
        (json!({ "merge": { "var": "" } }), json!(null)),
        (json!({ "==": [{ "var": "" }, "x"] }), json!(null)),
        (json!({ "<": [{ "var": "0" }, 1] }), json!(null)),
        (json!({ "!": { "+": { "var": "0" } } }), json!(null)),
        (json!({ "in": [1, { "var": "" }] }), json!(true)),
        (json!({ "var": "0.0.0.none" }), json!(null)),
        (json!({ "some": [{ "var": "" }, { "===": [{ "var": "" }, 1] }] }), json!(true)),
    ];
    let actual = table.clone().map(|(source, _)| (source.clone(), rule(source).evaluate(&data)));
    dismantle(data);
    assert_eq!(actual, table);
}

#[test]
fn an_evaluation_is_bounded() {
    let text = rule(json!({ "cat": [{ "var": "" }] }));
    let nested = |levels| (0..levels).fold(json!("x"), |inner, _| json!([inner]));
    assert_eq!(text.evaluate(&nested(Rule::MAX_DATA_DEPTH)), json!("x"));
    assert_eq!(text.evaluate(&nested(Rule::MAX_DATA_DEPTH + 1)), Value::Null);

    // The list and each of its items cost a step, and so do the nodes of the rule.
    let merged = rule(json!({ "merge": [{ "var": "" }] }));
    let done = |items: usize| merged.evaluate(&Value::from(vec![1; items])) != Value::Null;
    assert!(done(Rule::MAX_WORK / 4) && !done(Rule::MAX_WORK));
}

#[test]
fn what_would_take_too_long_comes_to_nothing() {
    let last = json!({ "var": "accumulator" });
    let doubling = |logic| json!({ "reduce": [{ "var": "list" }, logic, "x"] });
    let inside = |inner, _| json!({ "map": [vec![1; 100], inner] });
    let twice = json!([{ "cat": [{ "var": "" }, { "var": "" }] }]);
    let longer = |list, _| json!({ "map": [list, { "cat": [{ "var": "" }, { "var": "" }] }] });
    let long = json!({ "==": [{ "var": "long" }, { "var": "same" }] });
    for bomb in [
        doubling(json!({ "cat": [last, last] })),
        doubling(json!({ "merge": [last, last] })),
        doubling(json!([last, last])),
        doubling(json!([last])),
        doubling(json!({ "var": "" })),
        (0..10).fold(json!(true), inside),
        (0..26).fold(twice, longer),
        json!({ "all": [{ "var": "list" }, { "and": vec![long; 400] }] }),
        json!({ "and": vec![json!({ "!": { "in": ["?", { "var": "long" }] } }); 100] }),
        json!({ "and": vec![json!({ "!": { "in": ["?", { "var": "wide" }] } }); 100] }),
        json!({ "merge": { "var": "wide" } }),
    ] {
        // If an exhausted evaluation were false, this rule would hold.
        let negated = rule(json!({ "!": [{ "!": [bomb] }] }));
        let data = json!({
            "list": (0..1000).collect::<Vec<_>>(),
            "wide": vec![1; 100_000],
            "long": "a".repeat(1_000_000),
            "same": "a".repeat(1_000_000),
        });
        assert_eq!(negated.evaluate(&data), Value::Null, "{}", negated.source());
        assert!(!negated.holds(&data) && !rule(bomb.clone()).holds(&data));
    }
}

#[test]
fn a_thousand_items_are_not_too_many() {
    let item = |index| json!({ "qty": index, "price": 5, "tag": "tea" });
    let data = json!({ "items": (1..=1000).map(item).collect::<Vec<_>>() });
    let affordable = json!({ "<": [{ "*": [{ "var": "qty" }, { "var": "price" }] }, 5001] });
    let tagged = json!({ "in": [{ "var": "tag" }, ["tea", "coffee"]] });
    let all = rule(json!({ "all": [{ "var": "items" }, { "and": [affordable, tagged] }] }));
    assert!(all.holds(&data));
}

#[test]
fn a_rule_is_read_where_it_is_valid() {
    let source = r#"{"and":[{"==":[{"var":"b"},1]},{"missing":[]}]}"#;
    let rule: Rule = serde_json::from_str(source).unwrap();
    assert_eq!(serde_json::to_string(&rule).unwrap(), source);
    let error = serde_json::from_str::<Rule>(r#"{"and":[{"nope":1}]}"#).unwrap_err();
    assert_eq!(error.to_string(), "`condition.and[0]` has no operator `nope`");
}

#[test]
fn rules_are_equal_where_they_are_written_the_same() {
    assert_eq!(rule(json!({ "!": [1] })), rule(json!({ "!": [1] })));
    assert_ne!(rule(json!({ "!": [1] })), rule(json!({ "!": 1 })));
}

/// Rows of `rule -> result`, or `rule @ data -> result`.
#[track_caller]
fn check(table: &str) {
    for row in table.lines().map(str::trim).filter(|row| !row.is_empty()) {
        let (case, expected) = row.rsplit_once("->").unwrap();
        let (source, data) = case.split_once(" @ ").unwrap_or((case, "null"));
        let actual = rule(parse(source)).evaluate(&parse(data));
        assert_eq!(actual.to_string(), parse(expected).to_string(), "{row}");
    }
}

#[track_caller]
fn refuse(source: &str, expected: &str) {
    assert_eq!(Rule::new(parse(source)).unwrap_err().to_string(), expected);
}

#[track_caller]
fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[track_caller]
fn rule(source: Value) -> Rule {
    Rule::new(source).unwrap()
}

fn bottomless() -> Value {
    (0..1_000_000).fold(Value::Null, |inner, _| Value::Array(vec![inner]))
}

/// One row per value of a rule: whether it lets a step run.
#[test]
fn a_truthy_value_is_neither_empty_nor_zero() {
    for (value, is_truthy) in [
        (json!(true), true),
        (json!(1), true),
        (json!("false"), true),
        (json!({}), true),
        (json!([0]), true),
        (json!(false), false),
        (json!(null), false),
        (json!(0), false),
        (json!(""), false),
        (json!([]), false),
    ] {
        let rule = Rule::new(json!({ "var": "x" })).unwrap();
        assert_eq!(rule.is_truthy(&json!({ "x": value })), is_truthy, "{value}");
    }
    // An evaluation that uses up its steps is not.
    let items: Vec<_> = (0..1_000).collect();
    let copies = json!({ "map": [{ "var": "x" }, { "var": "" }] });
    let rule = Rule::new(json!({ "!!": [{ "merge": vec![copies; 100] }] })).unwrap();
    assert!(rule.is_truthy(&json!({ "x": [1] })));
    assert!(!rule.is_truthy(&json!({ "x": items })));
}
