"""What the interviewer says in a mock interview: the brief, the parts, and the rubric with its examples."""

from __future__ import annotations

from dataclasses import dataclass, field

from looplab.view import Block, Code

LENGTHS = (25, 45, 60)

BRIEF: list[Block] = [
    "An agent is a language model in a loop with tools: the model asks for a tool call, our code runs it and feeds the "
    "result back, until the model gives a final answer. Please build that loop, in one Python file, with the standard "
    "library only.",
    "No real model is at hand, so the model is a function that we script. I look at what your code does between one "
    "model call and the next, and at how the loop is forced to stop.",
    "You get the task in parts. Think aloud, ask what is unclear, run the checks whenever you like. Names and error "
    "texts are exact, because the checks compare them.",
]


@dataclass(frozen=True)
class Part:
    """A part of the task: what is asked, in how many minutes, and what the interviewer says to what is there.

    `minutes` holds one number for each of LENGTHS; 0 leaves the part out. `stage` is the stage that judges it, or 0.
    `all_holds` is a question, and `answer` a short answer to it. `words` are said to a requirement that does not hold
    and has the key in its sentence, or compares a field with that name; `some_holds` to any other.
    """

    name: str
    title: str
    minutes: tuple[int, int, int]
    stage: int
    asks: list[Block]
    all_holds: str = ""
    answer: str = ""
    some_holds: str = ""
    nothing: str = ""
    notebook: int = 0
    words: dict[str, str] = field(default_factory=dict)


PARTS = [
    Part("shapes", "Shapes", (4, 4, 5), 1, [
        "Two dataclasses, and three helpers that write scripts. A model is a function of messages and specs that "
        "returns a ModelReply. A reply with no tool calls is the final answer, and nothing else is.",
        Code('ToolCall(id, name, args)\n'
             'ModelReply(content="", tool_calls=[])        # a list of its own for each reply\n'
             'call("c1", "get_weather", city="Pune")       # a ToolCall\n'
             'asks(call(...), call(...))                   # a ModelReply\n'
             'final("It is 30 degrees.")                   # a ModelReply'),
        "ScriptedModel(replies) is a model that replays its replies, one a call. Its .seen is a list with a copy of "
        "the message list for every call: the list itself goes on growing. One call too many raises AssertionError "
        "with the text: script ran out.",
    ], "How would you explain to a colleague why text beside a call is no answer?",
        "A call says that the work goes on, so the text is a remark on the way. Only a reply that asks for nothing is "
        "the end; otherwise any text could end a run too early.",
        "Read me the shapes once more, field by field.",
        "Where would you begin? One dataclass is five lines, the other four.", 1, {
            "share": "Make two replies without calls. How many lists are there?",
            "script": "Call your model twice, aloud. What does it give, and what does it keep?"}),
    Part("validator", "Validator", (5, 6, 8), 2, [
        "validate_args(args, schema) returns None, or the first of these sentences that applies:",
        Code("arguments must be a JSON object\n"
             "missing required argument 'city'              in the order of required\n"
             "unexpected argument 'unit'                    then argument by argument,\n"
             "argument 'celsius' must be of type number     whichever of these two applies"),
        Code('{"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}'),
        "This is a schema; properties and required may be missing. There are four types: string, integer, number, "
        "boolean. A bool is never a number. Whether 3.0 is an integer is for you to choose: say which, aloud or in a "
        "comment.",
    ], "Why do you refuse an argument that the schema does not have, in place of dropping it?",
        "A dropped argument hides a misspelt option: the call runs, and does something else than the model meant. "
        "Refused, it is repaired in the next step.",
        "Take one input that fails, and walk me through your function with it.",
        "What is the first thing that can be wrong with arguments, before you look at any of them?", 2, {
            "bool": "Try true for a number and for an integer, and read me the line that decides.",
            "order": "Read me your checks in their order.",
            "before": "Read me your checks in their order.",
            "first": "Read me your checks in their order."}),
    Part("registry", "Registry", (5, 7, 9), 3, [
        "ToolRegistry holds the tools by name. execute never raises: whatever goes wrong becomes a text for the model.",
        Code("register(name, description, parameters, fn)   # raises: unsupported type 'array'\n"
             'specs()                                       # [{"name", "description", "parameters"}, ...]\n'
             "execute(name, args)                           # text"),
        Code("ERROR: unknown tool 'get_forecast'. Available tools: ['c_to_f', 'get_weather']\n"
             "ERROR: missing required argument 'city'. get_weather expects {\"city\": {\"type\": \"string\"}}\n"
             "ERROR: get_weather failed: KeyError: 'Atlantis'\n"
             '{"city": "Pune", "celsius": 30}'),
        "Check the name, then the arguments, then run. The names are listed in order of the alphabet. A refusal "
        "shows the properties as JSON. Results are JSON with every letter as it is. A result that is not JSON must "
        "not raise either: its text is for you to choose. Only register raises, whatever type of exception you like.",
    ], "Who reads these error texts, and what does a good one save?",
        "The model reads them. A text that says what is wrong and what was expected saves a step: the next call can be "
        "right.",
        "Walk one call through execute, from its name to the text.",
        "Think of the three things that can go wrong with a call, in order.", 3, {
            "exception": "Which line of yours can still raise?",
            "raises": "A tool raises. What does the model read then?",
            "refused at registration": "What do you look at before a tool is in the registry?",
            "not ascii": "Read me the observation letter by letter."}),
    Part("loop", "Loop", (6, 8, 10), 4, [
        "run_agent(task, model, registry) begins with a system and a user message and asks the model. It appends the "
        "reply, runs each call, appends one tool message for each, in order, and asks again, until a reply has no "
        "calls.",
        Code('{"role": "system", "content": ...}\n'
             '{"role": "user", "content": task}\n'
             '{"role": "assistant", "content": ..., "tool_calls": [{"id", "name", "args"}, ...]}\n'
             '{"role": "tool", "tool_call_id": ..., "name": ..., "content": ...}'),
        'It returns an object with the attributes status ("done"), answer and messages. Messages are plain dicts in '
        "one list, appended to and never edited. The last reply is appended too, with an empty list of tool_calls.",
    ], "A reply has three calls and the second fails. What stands in the list afterwards?",
        "The assistant message with its three calls, then three tool messages in the same order. The second starts "
        "with ERROR, and the third call has run.",
        "Draw me the list after the first round, message by message.",
        "Say the loop in one sentence first. Then write that sentence.", 4, {
            "goes on": "What becomes of a call that fails, and what is the model shown of it?",
            "recovers": "What becomes of a call that fails, and what is the model shown of it?",
            "answer": "Which line ends the run, and what does it ask of the reply?",
            "ends the run": "Which line ends the run, and what does it ask of the reply?",
            "two calls": "Draw me the list after a reply with two calls.",
            "specs": "What do you hand to the model, besides the list?",
            "never edited": "Who holds the list, and who may change it?"}),
    Part("exits", "Exits", (5, 7, 8), 5, [
        "Now force it to stop. There are three exits: done, step_limit, token_budget.",
        Code("AgentResult(status, answer, steps, tokens, messages)\n"
             "count_tokens(obj) = max(1, len(json.dumps(obj, ensure_ascii=False)) // 4)\n"
             'run_agent(task, model, registry, system="Use the tools to answer the user.",\n'
             "          max_steps=8, token_budget=4000)"),
        "Before each call the prompt is estimated: count_tokens(specs) + count_tokens(messages), the whole list. If "
        "what is spent and this prompt are more than the budget, the run stops before the call. A step adds its "
        "prompt and count_tokens of its reply message to tokens.",
        "After max_steps model calls the run stops; the calls of the last step are still run. Steps are the model "
        "calls that were made, none if the budget is too small for the first. The answer of a stopped run is None, "
        "and its messages are all there.",
    ], "What does a run of S steps cost, and can it still pass its budget?",
        "Every step sends the whole list again, so the input grows with the square of S. It can pass the budget by one "
        "reply, the last, which comes after the check.",
        "Say the exits aloud, then show me the line of each.",
        "Which line ends your loop if the model never does?", 5, {
            "letters": "What does your JSON make of a letter such as ü?",
            "result holds": "Read me the fields of your result, and what is in each.",
            "told otherwise": "Read me the head of run_agent. What holds for a caller who gives nothing more?",
            "calls of the last": "The last step that is allowed asks for a tool. What becomes of the call?",
            "may come with": "Count the model calls aloud, up to the one that is not made.",
            "returns its": "What does a caller get from a run that was stopped?",
            "half": "What do you compare with the budget, and at which moment?",
            "budget": "What do you compare with the budget, and at which moment?",
            "token": "Add up one step aloud: its prompt, then its reply message.",
            "answer": "What does a caller get from a run that was stopped?",
            "step": "Count the model calls aloud, up to the one that is not made."}),
    Part("follow-up", "A change", (0, 8, 10), 0, [], "What would you test first, if you had another ten minutes?",
         "What would cost most if it were wrong, and what no test runs yet: the change together with a call that fails "
         "and with a limit that stops the run.",
         nothing="Which line of the loop does this touch?"),
]
ALOUD_MINUTES = (0, 5, 10)


@dataclass(frozen=True)
class Criterion:
    """A line of the rubric: an example of each of the three marks, and the notebook to practise with.

    The notebook 0 stands for that of the change that was drawn.
    """

    name: str
    weak: str
    fine: str
    strong: str
    notebook: int


MARKS = ("weak", "fine", "strong")
RUBRIC = [
    Criterion("Shapes",
              "One dict with a text and at most one call; no ids.",
              "Two dataclasses; each reply has a list of its own; seen keeps copies.",
              "Says before writing that text beside a call is no answer, and why a call needs an id.", 1),
    Criterion("Validator",
              'assert isinstance(args["city"], str): it raises, and knows one tool.',
              "One sentence for each fault, in the order that was asked for; bool before number.",
              "Says that fn(**args) would raise a TypeError that looks like the tool's own bug; says aloud what null "
              "and 3.0 should do.", 2),
    Criterion("Registry",
              "fn = tools[name]; fn(**args), with an except that prints.",
              "Name, arguments, run; each failure is a text that starts with ERROR.",
              "Says who reads the text; refuses at registration what it would not check, such as enum; lets Ctrl-C "
              "pass.", 3),
    Criterion("Loop",
              "if reply.content: return reply.content",
              "One tool message for each call, with its id, in order.",
              "Says what a provider would refuse; tries two calls of which one fails, without being asked.", 4),
    Criterion("Exits",
              "One of the two limits, or a budget that is looked at when the call is paid.",
              "Both limits; the budget is checked before the call.",
              "Names the three exits aloud before writing; keeps room for the last reply; says that twice the steps "
              "cost some four times the tokens, because each step sends the whole list again.", 5),
    Criterion("A change",
              "Rewrites the loop, and checks that held before fail.",
              "The change works, and everything else still holds.",
              "A few lines, or a wrapper around one of the two places where the loop touches the world; says what "
              "becomes of the other calls.", 0),
    Criterion("Aloud",
              "Silence, then: it should work.",
              "Says what the next lines will do, and runs the checks early.",
              "Says what is still missing: repeated calls, a timeout on each tool, cutting long results, approval, "
              "saving the list.", 17),
]

# What a requirement is about, so that one fault that shows in several parts is counted once, where it is. If one of the
# ground fails, every failure in a later part may come from it; else only one that is about the same fault.
GROUND = ("has the names of", "arguments that fit", "can be registered", "success is the result", "runs its function",
          "happy path", "without calls ends", "is first shown", "holds an id", "holds text and calls")
SAME_FAULT = (
    ("missing argument", "what a tool expects"),
    ("wrong type", "for a number", "bool", "is text", "whole", "not required is checked", "argument by argument"),
    ("unexpected argument", "not in the schema", "extra one", "takes no arguments", "argument by argument"),
    ("no object",),
    ("without arguments", "without properties", "a result keeps", "a result of none", "not json",
     "exception of a tool"),
    ("unknown tool", "the name is checked", "not registered"),
    ("a tool that raises", "exception", "call that fails", "a call fails"),
)
