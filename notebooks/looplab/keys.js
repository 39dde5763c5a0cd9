/* looplab: keys, focus and names in its widgets. JupyterLab runs this with each widget; it takes hold once in a page. */
(body => {
    if (body.dataset.looplabKeys) return;
    body.dataset.looplabKeys = 'on';
    const CONTROLS = 'button, input, textarea, select, summary, [tabindex="0"]';
    const controlsOf = view => [...view.querySelectorAll(CONTROLS)];

    /* A key pressed in a widget stays there: on a button, JupyterLab would take "d d" as "delete the cell". Keys held
       with Ctrl, Alt or Cmd go on to JupyterLab, and so does Shift+Enter. */
    body.addEventListener('keydown', event => {
        const isChord = event.ctrlKey || event.altKey || event.metaKey || event.shiftKey && event.key === 'Enter';
        if (event.target.closest('.ll-view, summary') && !isChord) event.stopPropagation();
    });

    /* Escape gives the focus back to the cell, and no key scrolls the notebook, unless what has the focus takes it.
       Both are seen to on the key's way down, for ipywidgets stops the keys of text fields on their way up. */
    body.addEventListener('keydown', event => {
        const {key, target} = event;
        if (key === 'Escape' && target.closest('.ll-view, summary')) {
            event.stopPropagation();
            target.closest('.jp-Cell')?.focus();
        }
        if (!target.closest('.ll-view') || event.ctrlKey || event.altKey || event.metaKey) return;
        const takers = key === ' ' ? 'button, summary, a, input, textarea, select'
            : /^(Page|Home|End)/.test(key) ? 'input:not([type="radio"], [type="checkbox"]), textarea, select, [role="slider"]'
            : key.startsWith('Arrow') ? 'input, textarea, select, [role="slider"]' : '*';
        const canScroll = target.scrollHeight > target.clientHeight || target.scrollWidth > target.clientWidth;
        if (!target.matches(takers) && !(target.role === 'region' && canScroll)) event.preventDefault();
    }, true);

    /* The control that has the focus, its view, and its place among the controls there. */
    let used = null, view = null, place = 0;
    body.addEventListener('focusin', ({target}) => {
        view = target.closest('.ll-view');
        used = target;
        place = view ? controlsOf(view).indexOf(target) : -1;
        if (pressed) requestAnimationFrame(showWhatCame);
    });

    /* Where a press is hard to undo, the second of a double click, and a key held down, are no second wish. */
    body.addEventListener('click', event => {
        if (event.detail > 1 && event.target.closest('.ll-once')) event.stopPropagation();
    }, true);
    body.addEventListener('keydown', event => {
        if (event.repeat && event.key === 'Enter' && event.target.closest('.ll-once')) event.preventDefault();
    }, true);

    /* After a press, the notebook is scrolled no further than it takes to see what got the focus, and the sentence,
       where it changed; until the reader does something else. */
    let pressed = null;
    for (const type of ['keydown', 'pointerdown', 'wheel'])
        body.addEventListener(type, () => { pressed = null; }, {capture: true, passive: true});
    body.addEventListener('click', ({target}) => {
        const place = target.closest('.ll-view'), page = place?.closest('.jp-WindowedPanel-outer');
        if (page && target.closest('button')) pressed = {place, page, top: page.scrollTop, sentence: null};
    });
    const showWhatCame = () => {
        if (!pressed) return;
        pressed.page.scrollTop = pressed.top;
        if (pressed.place.contains(document.activeElement) && document.activeElement !== pressed.place)
            document.activeElement.scrollIntoView({block: 'nearest'});
        pressed.sentence?.scrollIntoView({block: 'nearest'});
    };

    /* A control that is switched off or replaced leaves the focus to the nearest one of its row, or of its view, and
       where there is none, to the view itself: not to the page, where the next key would be the notebook's. One that
       is switched on again gets it back, unless the reader has done something else since. */
    let owner = null;
    for (const type of ['keydown', 'pointerdown'])
        body.addEventListener(type, () => { owner = null; }, true);
    const keepFocus = () => {
        if (owner?.isConnected && !owner.disabled && owner.checkVisibility()) {
            owner.focus({preventScroll: true});
            owner = null;
        }
        const isLost = view?.isConnected && place >= 0 && (used.disabled || !used.checkVisibility());
        if (!isLost || ![body, used].includes(document.activeElement)) return;
        const controls = controlsOf(view), row = used.parentElement;
        const isHeir = part => !part.disabled && part.checkVisibility({visibilityProperty: true})
            && (part.matches('button, input, textarea, select, [role="slider"]') || part === controls[place]);
        const distance = part => Math.abs(controls.indexOf(part) - place) + controls.length * (part.parentElement !== row);
        const [heir = view] = controls.filter(isHeir).sort((a, b) => distance(a) - distance(b));
        owner ??= used;
        heir.focus({preventScroll: true});
    };

    /* What ipywidgets leaves without: radio buttons of one name, among which arrow keys choose and at which Tab stops
       once; for a screen reader, the names of rows and of sliders, what is to be told, and which fields are wrong;
       and a script that can only be copied. */
    let rows = 0;
    const giveNames = () => {
        for (const view of body.querySelectorAll('.ll-view')) view.tabIndex = -1; /* a click anywhere in it stays in it */
        for (const row of body.querySelectorAll('.ll-view .widget-radio')) {
            row.dataset.looplabRow ??= rows += 1;
            row.role = 'radiogroup';
            row.ariaLabel = row.querySelector('.widget-label').textContent;
            for (const option of row.querySelectorAll('input')) option.name = `looplab-${row.dataset.looplabRow}`;
        }
        for (const handle of body.querySelectorAll('.ll-view .noUi-handle')) {
            const place = handle.closest('.ll-limit') ?? handle.closest('.widget-slider');
            handle.ariaLabel = [...place.querySelectorAll('.widget-label')].map(label => label.textContent).join('');
        }
        for (const news of body.querySelectorAll('.ll-live')) news.ariaLive = 'polite';
        for (const field of body.querySelectorAll('.ll-field input, .ll-field textarea'))
            field.ariaInvalid = String(field.closest('.ll-invalid') !== null);
        for (const script of body.querySelectorAll('.ll-script textarea')) script.readOnly = true;
    };

    new MutationObserver(changes => {
        const parts = changes.flatMap(({addedNodes}) => [...addedNodes]);
        if (parts.length) giveNames();
        keepFocus();
        const sentence = pressed && parts.find(part => part.matches?.('.ll-say') && pressed.place.contains(part));
        if (!sentence) return;
        pressed.sentence = sentence;
        requestAnimationFrame(showWhatCame);
    }).observe(body, {subtree: true, childList: true, attributeFilter: ['disabled', 'style']});
})(document.body);
